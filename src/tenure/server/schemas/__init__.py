"""What goes over the wire: requests, which refuse what they do not know, and answers."""

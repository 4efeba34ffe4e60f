"""Ways to run a handler, one in one file: on the loop, in a thread, in a process of its own."""

"""One command per file, named after the file."""

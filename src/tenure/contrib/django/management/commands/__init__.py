"""The commands, one in one file, named as they are called."""

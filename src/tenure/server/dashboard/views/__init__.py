"""The pages, one room each."""

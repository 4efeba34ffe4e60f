"""What users hang into the house: middleware around enqueue and run, and listeners for events."""

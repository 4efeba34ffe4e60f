"""Ways beside the database by which wakeups travel. They carry no job, and may be down."""

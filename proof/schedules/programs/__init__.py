"""Programs whose schedules are fired by real schedulers. Nobody serves their queue."""

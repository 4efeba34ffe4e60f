"""What becomes of jobs when a worker is killed or stopped, here and in other queues."""

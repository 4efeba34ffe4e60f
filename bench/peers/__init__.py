"""Other job queues, each in an environment of its own, measured beside Tenure."""

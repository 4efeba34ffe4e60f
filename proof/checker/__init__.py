"""The offline checker: what clients and handlers saw of each job, against the life cycle."""

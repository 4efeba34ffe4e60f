"""Workers cut off from the database: no effect of theirs after their lease's end."""

"""What `/metrics` says: asked of the database in rounds, counted on, and written down."""

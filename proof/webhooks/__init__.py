"""Webhooks delivered while workers, the database and the receiver fail."""

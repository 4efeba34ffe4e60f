"""Tenure, a durable job queue on PostgreSQL.

What people import lives one level down; this file holds no code of its own.
"""

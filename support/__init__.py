"""What tests, measurements and proofs share: private PostgreSQL servers and their databases.

Not shipped, and imports nothing of tenure.
"""

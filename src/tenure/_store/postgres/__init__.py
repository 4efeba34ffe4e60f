"""The PostgreSQL store.

It contains all the SQL that Tenure sends, with one statement per file in `sql/`.
"""

"""The `/metrics` page: collect values from the database, count requests, write the page."""

"""What `manage.py` can do for Tenure."""

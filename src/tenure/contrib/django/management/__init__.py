"""Tenure's commands for `manage.py`."""

"""Tenure at home in other people's frameworks; each module needs the framework it is named for."""

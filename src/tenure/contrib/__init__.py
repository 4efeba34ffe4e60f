"""Integrations. Each module needs the library it is named after."""

"""The HTTP routes. They only expose the `admin` and `remote` methods and contain no logic."""

"""How Tenure is broken on purpose, to see that it shows."""

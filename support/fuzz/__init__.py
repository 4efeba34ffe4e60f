"""Every route with whatever its schema allows, and with what it does not: `just fuzz`."""

"""The worker protocol at load: what waiting costs, and how much passes through."""

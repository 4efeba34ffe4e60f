"""The proofs of the worker once more, with workers that reach nothing but a server, over HTTP."""

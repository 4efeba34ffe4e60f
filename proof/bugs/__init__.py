"""Deliberate bugs of the protocol: mutations of the .sql files, applied in memory alone."""

from proof.bugs.catalogue import BUGS, Bug, Edit, apply

__all__ = ["BUGS", "Bug", "Edit", "apply"]

"""Deliberate bugs of the protocol, applied in memory alone, and the runs that notice them."""

from proof.bugs.bug import Bug, Edit, Run
from proof.bugs.catalogue import BUGS, apply, named

__all__ = ["BUGS", "Bug", "Edit", "Run", "apply", "named"]

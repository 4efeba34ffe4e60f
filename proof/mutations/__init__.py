"""Deliberate bugs of the protocol, applied in memory alone, and the runs that notice them."""

from proof.mutations.bug import Bug, Edit, Run
from proof.mutations.catalogue import BUGS, apply, named

__all__ = ["BUGS", "Bug", "Edit", "Run", "apply", "named"]

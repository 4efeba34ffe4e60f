"""Imported by every process of a worker: applies the seeded bug that the run is about, if any."""

import os

if os.environ.get("PROOF_BUG"):
    from proof import mutations

    mutations.apply(os.environ["PROOF_BUG"])

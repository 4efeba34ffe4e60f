"""Programs whose schedules are fired by real schedulers. No worker serves their queue."""

import os

from proof import mutations

if os.environ.get("PROOF_BUG"):
    mutations.apply(os.environ["PROOF_BUG"])

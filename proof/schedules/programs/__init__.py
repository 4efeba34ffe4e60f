"""Programs whose schedules are fired by real schedulers. Nobody serves their queue."""

import os

from proof import bugs

if os.environ.get("PROOF_BUG"):
    bugs.apply(os.environ["PROOF_BUG"])

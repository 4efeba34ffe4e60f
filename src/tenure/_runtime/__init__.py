"""One process that runs jobs: claim, run, renew, settle."""

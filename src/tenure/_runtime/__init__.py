"""One process that runs jobs: claims, runs, renews and settles them."""

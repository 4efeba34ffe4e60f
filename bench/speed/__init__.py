"""How fast: Tenure beside the bare engine and its peers, in one run, by one protocol."""

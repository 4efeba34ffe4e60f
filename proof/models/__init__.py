"""Models of the protocol in TLA+, and the checks that TLC makes of them."""

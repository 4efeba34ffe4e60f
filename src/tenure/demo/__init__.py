"""The demo: a small shop whose jobs fail, are retried, run late and lose their workers.

`tenure demo` runs it with real processes that use only the public API. Nothing is imported here,
because the shop's workers should load only the shop.
"""

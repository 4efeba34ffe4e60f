"""The demo: a small shop whose jobs fail, are retried, are late and lose their worker, for real.

Everything here is done by real processes through what people import; nothing is written past it.
`tenure demo` runs it. Nothing is imported here: the shop's workers load the shop alone.
"""

"""How a process ended, in words."""

import signal


def describe(code: int) -> str:
    """The signal's name for a negative code, else the exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"

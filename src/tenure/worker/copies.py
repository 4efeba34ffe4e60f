"""A copy of a child that a handler has forked, and that goes on where the child is: it must end
before it touches the child's connections."""

import asyncio
import os
import threading
from functools import partial
from typing import NoReturn


def end_copies(loop: asyncio.AbstractEventLoop) -> None:
    """Have a copy of this process end as soon as it comes back to the event loop, if it was forked
    there. What it does before that, such as to start another program, is the handler's business.
    """
    os.register_at_fork(after_in_child=partial(_end_at_loop, loop, threading.get_ident()))


def _end_at_loop(loop: asyncio.AbstractEventLoop, thread: int) -> None:
    if threading.get_ident() != thread:
        return
    # What would be called before the loop waits again; memory is the copy's own by now.
    for handle in getattr(loop, "_ready", ()):
        handle.cancel()
    selector = getattr(loop, "_selector", None)
    if selector is not None:
        selector.select = _end


def _end(_: float | None = None) -> NoReturn:
    os._exit(0)

"""Raising `Stopped` into a thread, and taking it back. Who may, and when, its callers know."""

import ctypes

from tenure.errors import Stopped

_set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_async_exc.argtypes = [ctypes.c_ulong, ctypes.py_object]


def raise_into(thread: int) -> None:
    """Raise `Stopped` at the thread's next step of Python; code in C is not reached."""
    _set_async_exc(thread, ctypes.py_object(Stopped))


def take_back(thread: int) -> None:
    """Take back what was raised into the thread and has not arrived."""
    _set_async_exc(thread, ctypes.py_object())

"""The loop of the live view: draw, hear keys, draw again, until somebody has seen enough."""

import os
import time
from typing import TYPE_CHECKING

from tenure.cli.exits import Exit
from tenure.cli.top.asking import Asker
from tenure.cli.top.frame import frame
from tenure.cli.top.keys import Keys, keys
from tenure.cli.top.view import Quit, View

if TYPE_CHECKING:
    from rich.live import Live

# Times move on between two answers.
_TICK = 1.0
# So long after an answer should have come it is said that none came.
_LATE = 3.0


def watch(url: str | None, schema: str | None, *, interval: float, who: str | None) -> Exit:
    """Show it until q or a signal."""
    from rich.console import Console
    from rich.live import Live

    from tenure import sources
    from tenure.app import Tenure

    url = sources.database_url(url)
    asker = Asker(
        Tenure(url, schema=schema, redis="", pool_size=1), url, interval=interval, who=who
    )
    for name in ("COLUMNS", "LINES"):
        # What a shell has exported does not change with the terminal's size.
        os.environ.pop(name, None)
    console = Console(highlight=False)
    with (
        keys() as pressed,
        Live(console=console, screen=True, auto_refresh=False, transient=True) as live,
    ):
        asker.start(pressed.wake)
        code = _loop(asker, pressed, live, interval)
    asker.stop()
    return code


def _loop(asker: Asker, pressed: Keys, live: "Live", interval: float) -> Exit:
    view = View()
    while not pressed.ended:
        _draw(asker, view, live, interval)
        for key in pressed.wait(_TICK):
            match view.press(key):
                case None:
                    pass
                case Quit():
                    return Exit.DONE
                case wish:
                    view.said = "…"
                    asker.wish(wish)
    return Exit.INTERRUPTED


def _draw(asker: Asker, view: View, live: "Live", interval: float) -> None:
    from rich.console import Group

    if asker.said is not None:
        view.said, asker.said = asker.said, None
    if asker.opened is not None:
        view.opened, asker.opened, view.said = asker.opened, None, ""
    size = live.console.size
    lines = frame(
        asker.overview,
        view,
        width=size.width,
        height=size.height,
        state=_state(asker, interval),
    )
    live.update(Group(*lines), refresh=True)


def _state(asker: Asker, interval: float) -> str:
    """How fresh it is."""
    age = time.monotonic() - asker.answered_at
    if asker.trouble:
        trouble = asker.trouble
        return f"{trouble.what}, for {age:.0f} s: {trouble.why}; {trouble.todo}"
    if asker.overview is None:
        return "looking…"
    if age > interval + _LATE:
        return f"no answer for {age:.0f} s"
    return f"every {interval:g} s"

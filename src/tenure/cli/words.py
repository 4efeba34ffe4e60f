"""Words for people, on stderr: what happened; and errors in three lines. Data is elsewhere."""

import sys


def safe(text: object) -> str:
    """The text in one line, with signs that would steer a terminal written out."""
    return _written_out(" ".join(str(text).split()))


def safe_lines(text: str) -> list[str]:
    """The text line by line as it is indented, with signs that would steer a terminal written
    out."""
    return [_written_out(line) for line in text.expandtabs().splitlines()]


def _written_out(line: str) -> str:
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"{safe(text)}\n")


def tell(what: str, why: str, todo: str) -> None:
    """An error in three lines: what, why, what to do."""
    sys.stderr.write(f"error: {safe(what)}\nwhy:   {safe(why)}\ndo:    {safe(todo)}\n")

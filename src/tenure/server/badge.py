"""Which installation this is, so that nobody takes production for a playground."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Badge:
    """A word and its colour (red, amber, green, blue or grey), beside the name on every page."""

    word: str
    colour: str = "grey"

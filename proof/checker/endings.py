"""Which kind of end an attempt row tells of, by its outcome and its error."""

# How the errors of losses begin or end.
_BY_THE_SERVER = "the database was restarted or failed over"
_AFTER_ANOTHER = "right after another job"


def ending_kind(outcome: str, error_type: str | None, message: str | None) -> str:
    """The outcome by the checker's names, which tell one loss from another."""
    message = message or ""
    if outcome == "released" and message.startswith(_BY_THE_SERVER):
        return "excused"
    if outcome != "lost" or error_type is None:
        return outcome
    if error_type == "LeaseExpired":
        return "unbegun" if "not known to have begun" in message else "expired"
    if error_type == "StoodStill":
        return "stood_still"
    if message.startswith("its worker process"):
        return "crashed"
    if message.startswith("its own process"):
        return "crashed" if message.endswith(_AFTER_ANOTHER) else "died"
    raise ValueError(f"no such loss: {error_type}: {message}")

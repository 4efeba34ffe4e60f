"""How a finding is written: what is fine in a few words, what is not with why and what to do."""

from collections.abc import Iterator

from tenure._model.diagnostics import Finding, FindingCode, Level

Findings = Iterator[Finding]


def fine(subject: str, what: str) -> Finding:
    """Nothing to do."""
    return Finding(subject, Level.FINE, what)


def warning(subject: str, fault: FindingCode, what: str, why: str, todo: str) -> Finding:
    """What could be better, or may be meant so."""
    return Finding(subject, Level.WARNING, what, why, todo, fault)


def problem(subject: str, fault: FindingCode, what: str, why: str, todo: str) -> Finding:
    """What is wrong."""
    return Finding(subject, Level.PROBLEM, what, why, todo, fault)


def in_sql(*statements: str) -> str:
    """What to do, where it is done in SQL."""
    return f"in SQL: {'; '.join(statements)}"


def run(command: str) -> str:
    """What to do, where it is a command."""
    return f"run: {command}"

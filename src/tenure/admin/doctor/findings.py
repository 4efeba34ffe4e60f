"""Build findings.

If all is well, a finding is a single sentence. Otherwise, it explains what's wrong, why it matters
and what to do about it.
"""

from collections.abc import Iterator

from tenure._model.diagnostics import Finding, FindingCode, Level

Findings = Iterator[Finding]


def fine(subject: str, what: str) -> Finding:
    """Report that a check passed."""
    return Finding(subject, Level.FINE, what)


def warning(subject: str, fault: FindingCode, what: str, why: str, todo: str) -> Finding:
    """Report something that may be intentional, or that resolves itself."""
    return Finding(subject, Level.WARNING, what, why, todo, fault)


def problem(subject: str, fault: FindingCode, what: str, why: str, todo: str) -> Finding:
    """Report something that is wrong."""
    return Finding(subject, Level.PROBLEM, what, why, todo, fault)


def in_sql(*statements: str) -> str:
    """Phrase SQL statements as something to do."""
    return f"in SQL: {'; '.join(statements)}"


def run(command: str) -> str:
    """Phrase a command as something to do."""
    return f"run: {command}"

"""The words that people search for stand in a title, a heading or a glossary entry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
GLOSSARY = "glossary.md"
INTERNAL = ("design/", "decisions/", "evidence/")
MOST_ENTRIES = 45
ANY = None  # any page for users, the glossary included

WORDS: dict[str, str | None] = {
    "deduplication": ANY,
    "idempotency": ANY,
    "visibility timeout": ANY,
    "rate limit": ANY,
    "concurrency limit": ANY,
    "throttle": ANY,
    "debounce": ANY,
    "batch": ANY,
    "fan-out": ANY,
    "graceful shutdown": ANY,
    "drain": ANY,
    "health check": ANY,
    "liveness": ANY,
    "readiness": ANY,
    "dead letter queue": ANY,
    "DLQ": ANY,
    "poison": ANY,
    "heartbeat": ANY,
    "retention": ANY,
    "cron": "tutorial/5-schedules.md",
    "timezone": ANY,
    "DST": "tutorial/5-schedules.md",
    "backfill": ANY,
    "outbox": ANY,
    "exactly once": "tutorial/3-transactions.md",
    "at least once": "tutorial/3-transactions.md",
    "priority": ANY,
    "delay": ANY,
    "chain": ANY,
    "Docker": ANY,
    "Kubernetes": ANY,
    "systemd": ANY,
    "Heroku": ANY,
    "RDS": ANY,
    "PgBouncer": "how-to/pgbouncer.md",
    "sslmode": ANY,
    "Prometheus": "how-to/monitoring.md",
    "OpenTelemetry": "how-to/tracing.md",
    "Celery": "from-celery.md",
    "Flower": "from-celery.md",
}


def without_code(text: str) -> str:
    """Return a page without its code blocks, whose comments look like headings."""
    return re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)


def entries() -> list[str]:
    """List the glossary's entries: each term with its synonyms, as `term (synonym, …)`."""
    entry = re.compile(r"^- \*\*(.+?)\*\*(?: \(([^)]*)\))?:", re.MULTILINE)
    return [" ".join(filter(None, found)) for found in entry.findall((DOCS / GLOSSARY).read_text())]


def headings() -> dict[str, list[str]]:
    """List the titles and headings of each page for users. The glossary has its entries."""
    pages = {str(page.relative_to(DOCS)): page.read_text() for page in DOCS.rglob("*.md")}
    found = {
        name: re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
        for name, text in pages.items()
        if not name.startswith(INTERNAL)
    }
    found[GLOSSARY] += entries()
    return found


def test_forty_words_are_searched_for() -> None:
    assert len(WORDS) == 40


@pytest.mark.parametrize(("word", "page"), WORDS.items(), ids=WORDS)
def test_a_searched_word_is_in_a_heading_or_a_glossary_entry(word: str, page: str | None) -> None:
    # "exactly-once writes" answers a search for "exactly once".
    pattern = re.compile(rf"\b{re.sub('[ -]', '[ -]', word)}\b", re.IGNORECASE)
    found = headings()
    lines = found[page] if page else [line for lines in found.values() for line in lines]
    assert any(pattern.search(line) for line in lines), f"{word!r} is in no heading of {page}"


def test_the_glossary_is_short_and_sorted() -> None:
    sections = (DOCS / GLOSSARY).read_text().split("\n## ")[1:]
    terms = [re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE) for text in sections]
    assert sum(map(len, terms)) <= MOST_ENTRIES
    assert sum(map(len, terms)) == len(entries()) == len(set(entries()))
    for section in terms:
        assert section == sorted(section, key=str.lower)

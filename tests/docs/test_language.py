"""The texts of the project are plain English; `just language` prints what to write instead."""

from __future__ import annotations

import pytest

from support import language
from support.binaries import ROOT

PLANTED = {
    "comment": ("src/tenure/x.py", "x = 1  # 30 s unless said\n"),
    "comment over two lines": ("src/tenure/x.py", "# 30 s unless\n# said\nx = 1\n"),
    "docstring": ("src/tenure/x.py", '"""Wait 30 s unless said."""\n'),
    "error": ("src/tenure/x.py", 'raise ValueError(f"{x} s unless said")\n'),
    "log line": ("src/tenure/x.py", 'log.info("worker: waits unless said")\n'),
    "help text": ("src/tenure/cli/x.py", 'typer.Option(help="30 s unless said")\n'),
    "template": ("src/tenure/server/x.html", "<p>30 s\n   unless said</p>\n"),
    "script": ("src/tenure/server/x.js", "// 30 s unless said\n"),
    "statement": ("src/tenure/x.sql", "-- 30 s unless said\nSELECT 1\n"),
    "page": ("docs/x.md", "# Title\n\nThe lease is 30 s\nunless said.\n"),
    "heading": ("docs/x.md", "# Unless said\n"),
    "table": ("docs/x.md", "| a |\n|---|\n| 30 s unless said |\n"),
    "deployment": ("deploy/x.yml", "# 30 s unless said\n"),
}


@pytest.mark.parametrize("place", PLANTED)
def test_a_planted_phrase_is_found_in_each_kind_of_place(place: str) -> None:
    path, text = PLANTED[place]
    line = next(n for n, line in enumerate(text.splitlines(), 1) if "nless" in line)
    assert [(hit.line, hit.text.lower().split()) for hit in language.hits(path, text)] == [
        (line, ["unless", "said"])
    ]


@pytest.mark.parametrize(
    "text",
    [
        "def test_nobody_claims() -> None: ...\n",
        "class Deed: ...\n",
        "told = 1\n",
        "self.asked = 1\n",
        "def run(said: int) -> None: ...\n",
    ],
)
def test_a_planted_name_is_found(text: str) -> None:
    assert len(list(language.hits("src/tenure/x.py", text))) == 1


def test_code_in_a_page_is_not_prose() -> None:
    text = "# Title\n\n```sh\necho unless said\n```\n\n<!-- unless said -->\n"
    assert not list(language.hits("docs/x.md", text))
    assert language.page("docs/x.md", text).words == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A " + "word " * 40 + "ends.\n", "a sentence has 42 words"),
        ("A " + "word " * 20 + "ends.\n", "the mean sentence has 22.0 words"),
        ("One; two; three.\n", "2 semicolons in 4 words"),
        ("What it does is plain.\n", "starts with What or Who"),
    ],
)
def test_a_page_with_hard_sentences_is_reported(text: str, problem: str) -> None:
    problems = language.page("docs/x.md", f"# Title\n\n{text}").problems
    assert any(one.startswith(problem) for one in problems), problems


def test_every_text_of_the_project_is_plain() -> None:
    hits = [
        str(hit)
        for path in language.files()
        for hit in language.hits(path, (ROOT / path).read_text())
    ]
    assert not hits, "\n".join(hits)


def test_every_sentence_of_the_user_docs_can_be_read() -> None:
    problems = [f"{page.path}: {one}" for page in language.pages() for one in page.problems]
    assert not problems, "\n".join(problems)


# Pages about features that are newer than the rewrite of the docs.
NEWER = {
    f"docs/{page}.md"
    for page in (
        *("how-to/http-work", "how-to/shell-work", "how-to/grpc-work", "how-to/notices"),
        *("how-to/enqueue-from-sql", "how-to/edit-jobs", "how-to/flask", "reference/kinds"),
        "reference/sql",
    )
}


def test_the_user_docs_stay_short() -> None:
    """They had 56,375 words of hand-written prose before they were rewritten; a quarter is gone.

    The pages in `NEWER` are held to a length of their own. Sections about new features in older
    pages have 2 % of the words.
    """
    pages = language.pages()
    older = sum(page.words for page in pages if page.path not in NEWER)
    assert older <= 0.75 * 56_375 * 1.02
    assert {
        page.path: page.words for page in pages if page.path in NEWER and page.words > 1500
    } == {}

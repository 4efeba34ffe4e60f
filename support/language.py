"""`python -m support.language [PATH …]`: hold the project's texts to plain English.

Prints each banned phrase with its place and what to write instead, then each page of the user docs
whose sentences are too long. Ends with 1 if there was a hit. `--words` counts the prose of the user
docs, page by page; `--words --at COMMIT` counts that of another commit.

Texts are read where a person reads them: comments, docstrings, strings and names in Python files;
whole templates, scripts and SQL files; prose, not code blocks, in Markdown.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from support.binaries import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A pattern, and what to write instead.
BANNED = {
    r"\b(?:go|goes|went|going|gone) on\b": "continue",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bheed(?:s|ed|ing)?\b": "respond to",
    r"\bleft away\b": "omitted",
    r"\b(?:unless|if not|where not|as) (?:said|told)\b": "by default",
    r"\b(?:is|are|was|were|as) (?:it|they) (?:is|are|was|were) told\b": "reported",
    r"\bso (?:many|long)\b(?! that\b)": "N, this long",
    r"\bat the most\b": "at most",
    r"\bby chance\b": "random",
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more than\b|later\b|such\b)": "is not a",
    r"\b(?:is|are|was|were) (?-i:none)\b": "does not exist",
    r"\b(?:become|becomes|became) of\b": "result, outcome",
    r"\b[Ww]hat [\w ]{1,30}\b(?:came|comes) to\b": "result, outcome",
    r"\b(?:stand|stands|stood) (?:before|behind)\b": "is in front of, follows",
    r"\banew\b": "again",
    r"\blately\b|\bof late\b": "recently",
    r"\bdeeds?\b": "action",
    r"\b(?:who|whoever) asks\b": "the caller",
    r"(?<!//)\bnobody\b(?![@\"'])|\bsomebody\b|\bwhoever\b": "the worker, the caller, no worker",
    r"\bsince \d+ (?:s|min|h|d)\b|\b(?:is|waits) (?:over|due)? ?since \{": "for 4 min, 4 min ago",
    r"\bwould be well\b|\bmore than nothing\b|\bas it sees fit\b": "the threshold, positive",
    r"\b(?:a)?sync(?:hronous)? world\b": "async code",
    r"\bin the year\b": "a date",
}
# Fine in other senses: printed by `--soft`, never a failure.
SOFT = {
    r"\btold\b": "reported, notified, printed",
    r"\bapart\b": "outside the transaction, in its own process",
    r"\bdear\b": "expensive",
    r"\bbeside\b": "next to, alongside",
    r"\bword\b": "value, name, reason",
    r"\blook\b": "warning, check",
}
# Words that are never part of a name in the code.
NAMES = {"told", "said", "asked", "meant", "came", "mend", "heed", "anew", "lately"} | {
    *("deed", "deeds", "nobody", "somebody", "whoever")
}
# Names that another library, or a protocol, gave.
FOREIGN: frozenset[str] = frozenset()

# Files that must show the banned words, or are quoted.
EXEMPT = {
    "support/language.py",
    "tests/docs/test_language.py",
    "docs/design/lease-protocol.md",  # the specification, word for word
    "docs/design/moved.md",
    "docs/design/renamed.md",
    "tests/package/surfaces_before.txt",
    "tests/package/test_names.py",
}
FOLDERS = ("src", "docs", "tests", "proof", "bench", "support", "deploy", "examples")
BUILT = {"__pycache__", "node_modules", ".venv", ".cache", "results"}
PYTHON = {".py", ".pyi"}
PROSE = {".md"}
WHOLE = {".html", ".js", ".css", ".sql", ".toml", ".yml", ".yaml", ".sh", ".svg", ".mjs", ".jinja"}
SUFFIXES = PYTHON | PROSE | WHOLE

# Pages for users: their sentences are measured.
NOT_FOR_USERS = (
    "docs/design/",
    "docs/decisions/",
    "docs/reference/names.md",
)
LONGEST, MEAN, SEMICOLONS = 35, 18.0, 2.0


@dataclass(frozen=True)
class Hit:
    """A banned phrase at a place."""

    path: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r}: write {self.instead!r}"


@dataclass(frozen=True)
class Page:
    """The measures of one page's prose."""

    path: str
    words: int
    mean: float
    longest: str
    semicolons: int
    statements: tuple[str, ...]  # sentences that start with What or Who and are not questions

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, one sentence each."""
        longest = len(self.longest.split())
        found = []
        if self.mean > MEAN:
            found.append(f"the mean sentence has {self.mean:.1f} words (limit: {MEAN:.0f})")
        if longest > LONGEST:
            found.append(f"a sentence has {longest} words (limit: {LONGEST}): {self.longest}")
        if self.words and self.semicolons > max(1, SEMICOLONS * self.words / 1000):
            found.append(f"{self.semicolons} semicolons in {self.words} words")
        found += [f"starts with What or Who, and is not a question: {s}" for s in self.statements]
        return found


def hits(path: str, text: str, *, soft: bool = False) -> Iterator[Hit]:
    """Find the banned phrases in a file's text."""
    patterns = SOFT if soft else BANNED
    suffix = PurePosixPath(path).suffix
    if suffix in PYTHON:
        pieces: Iterable[tuple[int, str]] = _python(text)
        if not soft:
            yield from _names(path, text)
    elif suffix in PROSE:
        pieces = _markdown(text)
    else:
        # The expressions of a template are code; their line ends stay.
        code = re.compile(r"\{[%{].*?[%}]\}", re.DOTALL)
        pieces = [(1, code.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text))]
    for first, piece in pieces:
        # A phrase may be broken over two lines, with a comment's mark between them.
        flat = re.sub(
            r"\n[ \t]*(?:#|--|//|\*|>)?[ \t]*", lambda m: "\n" + " " * (len(m[0]) - 1), piece
        )
        flat = flat.replace("\n", " ")
        flat = re.sub(r"(?<=\S)( +)(?=\S)", lambda m: " " + "\0" * (len(m[1]) - 1), flat)
        at = [i for i, c in enumerate(flat) if c != "\0"]
        dense = flat.replace("\0", "")
        for pattern, instead in patterns.items():
            for match in re.finditer(pattern, dense, re.IGNORECASE):
                line = first + piece.count("\n", 0, at[match.start()])
                yield Hit(path, line, match[0], instead)


def _python(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments, a block of them as one piece, and strings, each with its line."""
    block: list[str] = []
    begins = last = 0
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        yield 1, text
        return
    for token in tokens:
        if token.type == tokenize.COMMENT:
            if block and token.start[0] == last + 1:
                block.append(token.string)
            else:
                if block:
                    yield begins, "\n".join(block)
                block, begins = [token.string], token.start[0]
            last = token.start[0]
        elif token.type in _STRINGS:
            yield token.start[0], token.string
    if block:
        yield begins, "\n".join(block)


_STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def _names(path: str, text: str) -> Iterator[Hit]:
    """Find banned words in the names that a Python file gives: functions, classes, variables."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        else:
            continue
        parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)]
        spoken = " ".join(parts)
        if name not in FOREIGN and (NAMES & {*parts} or any(re.search(b, spoken) for b in BANNED)):
            yield Hit(path, node.lineno, name, "a name that says what it holds")


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the prose of a page by paragraphs, without code, comments and addresses."""
    lines: list[str] = []
    first, fence = 1, ""
    text = re.sub(r"<!--.*?-->", lambda m: re.sub(r"[^\n]", "", m[0]), text, flags=re.DOTALL)
    for number, line in enumerate([*text.splitlines(), ""], 1):
        mark = re.match(r"\s*(?:>\s*)?(`{3,}|~{3,})", line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            continue
        if mark and not mark[1].startswith(":"):
            fence = mark[1]
        if fence or not line.strip():
            if lines:
                yield first, "\n".join(lines)
            lines = []
            continue
        if not lines:
            first = number
        lines.append(line)


def page(path: str, text: str) -> Page:
    """Measure the prose of a Markdown page. A generated one has no hand-written words."""
    generated = "<!-- Generated by" in text[:300]
    flowing: list[str] = []
    cells: list[str] = []
    words = semicolons = 0
    for _, paragraph in _markdown(text):
        for block in re.split(r"\n(?=\s*(?:[-*]|\d+\.)\s)", paragraph):
            if re.match(r"\s*(?:#|:::|```|\{|<|=+$|-{3,}$|\(\w+\)=)", block):
                words += len(_plain(block).split()) if block.lstrip().startswith("#") else 0
                continue
            if block.lstrip().startswith("|"):
                rows = [
                    row for row in block.splitlines() if not re.match(r"\s*\|[\s:|-]+\|?$", row)
                ]
                for row in rows:
                    for cell in re.split(r"(?<!\\)\|", row.strip().strip("|")):
                        plain = _plain(cell)
                        words += len(plain.split())
                        semicolons += plain.count(";")
                        cells += _sentences(plain)
                continue
            plain = _plain(re.sub(r"^\s*(?:[-*]|\d+\.)\s", "", block))
            words += len(plain.split())
            semicolons += plain.count(";")
            flowing += _sentences(plain)
    lengths = [len(sentence.split()) for sentence in flowing]
    statements = tuple(s for s in flowing if re.match(r"(?:What|Who)\b", s) and not s.endswith("?"))
    return Page(
        path,
        0 if generated else words,
        sum(lengths) / len(lengths) if lengths else 0.0,
        max([*flowing, *cells], key=lambda s: len(s.split()), default=""),
        semicolons,
        statements,
    )


def _plain(markdown: str) -> str:
    """Return the text as it is read: links by their text, code by one word, no marks."""
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", "", markdown)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`+[^`]+`+", "code", text)
    text = re.sub(r"<[^>]+>|&\w+;", "", text)
    return re.sub(r"[*_>#|\\]", "", text).strip()


def _sentences(text: str) -> list[str]:
    """Split prose at full stops, question marks, and colons that end a line."""
    flat = " ".join(text.split())
    parts = re.split(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]*[A-Z0-9c])(?<!e\.g\. )(?<!i\.e\. )", flat)
    return [part for part in parts if re.search(r"\w", part)]


def files(*paths: str) -> list[str]:
    """List the files whose texts are held, or those below the given paths."""
    roots = [ROOT / path for path in paths or FOLDERS] + ([] if paths else [*ROOT.glob("*.md")])
    listed = {file for root in roots for file in ([root] if root.is_file() else root.rglob("*"))}
    return [
        path
        for path in sorted(file.relative_to(ROOT).as_posix() for file in listed if file.is_file())
        if PurePosixPath(path).suffix in SUFFIXES
        and path not in EXEMPT
        and not BUILT & set(PurePosixPath(path).parts)
    ]


def is_for_users(path: str) -> bool:
    """Return whether a page is part of the user docs."""
    if path == "README.md":
        return True
    return path.startswith("docs/") and path.endswith(".md") and not path.startswith(NOT_FOR_USERS)


def pages(commit: str | None = None) -> list[Page]:
    """Measure the pages of the user docs, as they are or as they were at a commit."""
    if commit is None:
        return [
            page(p, (ROOT / p).read_text()) for p in files("README.md", "docs") if is_for_users(p)
        ]
    git = ["/usr/bin/git", "-C", str(ROOT)]
    tree = ["ls-tree", "-r", "--name-only", commit, "README.md", "docs"]
    listed = subprocess.check_output([*git, *tree], text=True, timeout=60).splitlines()
    return [
        page(
            path, subprocess.check_output([*git, "show", f"{commit}:{path}"], text=True, timeout=60)
        )
        for path in listed
        if is_for_users(path) and path not in EXEMPT
    ]


def main(argv: list[str]) -> int:
    """Print what was found; 1 if something was."""
    parser = argparse.ArgumentParser(prog="python -m support.language", description=__doc__)
    parser.add_argument("paths", nargs="*", help="files or folders (default: the whole project)")
    parser.add_argument("--words", action="store_true", help="count the prose of the user docs")
    parser.add_argument("--at", metavar="COMMIT", help="with --words: at this commit")
    parser.add_argument("--soft", action="store_true", help="words that are fine in other senses")
    options = parser.parse_args(argv)
    if options.words:
        counted = pages(options.at)
        for one in sorted(counted, key=lambda page: page.words):
            print(f"{one.words:6} words, mean sentence {one.mean:4.1f}  {one.path}")
        print(f"{sum(one.words for one in counted):6} words in {len(counted)} pages")
        return 0
    count = 0
    for path in files(*options.paths):
        text = (ROOT / path).read_text()
        for hit in hits(path, text, soft=options.soft):
            print(hit)
            count += 1
        if is_for_users(path) and not options.soft:
            for problem in page(path, text).problems:
                print(f"{path}: {problem}")
                count += 1
    print(f"{count} found")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

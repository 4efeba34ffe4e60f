"""No module of the package imports itself by way of others.

Every import counts: at the top, inside a function, and for type checkers alone.
"""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(text: str, modules: set[str]) -> set[str]:
    """The modules of the package that this text imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
    return found & modules


def _reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    """All modules that an import of this one leads to, by way of others too."""
    seen: set[str] = set()
    ahead = list(imports[start])
    while ahead:
        module = ahead.pop()
        if module not in seen:
            seen.add(module)
            ahead += imports[module]
    return seen


def circles(texts: dict[str, str]) -> list[set[str]]:
    """The groups of modules that import each other, by way of others too."""
    imports = {module: _imported(text, set(texts)) for module, text in texts.items()}
    reached = {module: _reached(module, imports) for module in texts}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in texts
        if module in reached[module]
    }
    return sorted(map(set, groups), key=sorted)


def test_no_module_imports_itself_by_way_of_others() -> None:
    texts = {_module(path): path.read_text() for path in (SOURCE / "tenure").rglob("*.py")}
    assert len(texts) > 100
    assert circles(texts) == []


def test_every_kind_of_import_counts() -> None:
    texts = {
        "p": "",
        "p.a": "from p import b",
        "p.b": "def f():\n    import p.c",
        "p.c": "if TYPE_CHECKING:\n    from p.a import name",
        "p.d": "from p.a import name",
    }
    assert circles(texts) == [{"p.a", "p.b", "p.c"}]

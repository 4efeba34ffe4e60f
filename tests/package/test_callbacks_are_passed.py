"""A callback is passed to a constructor, never assigned to an object that exists already.

So the place that builds an object shows every callback that it has.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parents[2] / "src" / "tenure"


def assigned_late(text: str) -> list[int]:
    """The lines that assign an `on_…` attribute, but for those of an object's own `__init__`."""
    return sorted(node.lineno for node in _late(ast.parse(text), function=""))


def _late(node: ast.AST, function: str) -> Iterator[ast.Attribute]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        function = getattr(node, "name", "")
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if node.attr.lstrip("_").startswith("on_") and not (own and function == "__init__"):
            yield node
    for child in ast.iter_child_nodes(node):
        yield from _late(child, function)


def test_no_callback_is_assigned_after_construction() -> None:
    late = {
        str(path.relative_to(SOURCE)): assigned_late(path.read_text())
        for path in SOURCE.rglob("*.py")
    }
    assert len(late) > 100
    assert {name: lines for name, lines in late.items() if lines} == {}


def test_every_kind_of_assignment_after_construction_is_found() -> None:
    text = """
class A:
    def __init__(self, other, on_end):
        self.on_end = on_end
        self._on_start: object = None
        other.on_end = on_end
    def later(self):
        self.on_end = None
        self._on_end: object = None
a.on_end, b = 1, 2
a.b.on_end += 1
"""
    assert assigned_late(text) == [6, 8, 9, 10, 11]

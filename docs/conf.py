"""How the pages become a site. What they say is in the pages; `just docs` builds it."""

from importlib import metadata
from typing import Any

from pygments.lexers.sql import PostgresLexer  # type: ignore[import-untyped]  # no types
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

from tenure.admin import Admin
from tenure.admin._commands import AdminCommand, AsyncTwin, SubGroup

project = "Tenure"
release = metadata.version("tenure")
# Tabs come from sphinx-design; the Python reference from docstrings, in Google style.
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_title = f"Tenure {release}"
html_copy_source = False
html_show_copyright = False
highlight_language = "text"

# Links are plain Markdown, `page.md#heading`, so that they lead somewhere in a checkout too.
myst_heading_anchors = 3

# In docstrings, `name` is code.
default_role = "code"
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True


def setup(app: Sphinx) -> None:
    """Show SQL as PostgreSQL's, and operator's commands as the methods that a caller sees."""
    app.add_lexer("sql", PostgresLexer)  # The usual one doesn't know dollar quotes.
    groups: list[type] = [Admin]
    groups += [value.kind for value in vars(Admin).values() if isinstance(value, SubGroup)]
    for kind in {base for group in groups for base in group.__mro__}:
        for name, value in list(vars(kind).items()):
            if isinstance(value, AdminCommand):
                setattr(kind, name, as_method(value))
    # The overloads of the decorators are for type checkers. Show the whole signature instead.
    source = ModuleAnalyzer.for_module("tenure.app")
    source.analyze()
    source.overloads.clear()
    app.connect("autodoc-process-signature", without_type_parameters)
    app.connect("autodoc-skip-member", skip_async_version)


def as_method(command: AdminCommand[Any, Any, Any]) -> Any:
    """Return the method of a command. It returns what its operation ends with."""
    method = command.__wrapped__
    *_, result = method.__annotations__["return"].__args__
    method.__annotations__["return"] = result
    return method


def without_type_parameters(*event: Any) -> tuple[str | None, str | None]:
    """Leave out the annotations of a task's own arguments, which a reader cannot resolve."""
    *_, signature, result = event
    return signature and signature.replace(": ~P", ""), result


def skip_async_version(_app: Sphinx, _what: str, _name: str, value: Any, *_: Any) -> bool | None:
    """Leave out the async version of a command, which differs only in its name."""
    return True if isinstance(value, AsyncTwin | SubGroup) else None

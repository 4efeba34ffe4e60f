"""Texts of the pages that have to agree with the code: keys, limits and commands."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files

from tenure._rules.operations import FASTEST
from tenure._store.postgres.audit import _SEARCHED
from tenure.admin import role_scopes
from tenure.server.dashboard.rendering import PLACES
from tenure.types import Scope

DASHBOARD = files("tenure.server.dashboard")


def template(name: str) -> str:
    return DASHBOARD.joinpath("templates", name).read_text()


def test_help_dialog_lists_every_key() -> None:
    script = DASHBOARD.joinpath("static", "keys.js").read_text()
    acts = script.split("const ACTS = {")[1].split("};")[0]
    keys = re.findall(r'^  "?([a-z/?])"?: ', acts, re.MULTILINE)
    assert len(keys) == 7
    dialog = template("base.html").split('<dialog id="keys"')[1]
    assert all(f"<kbd>{key}</kbd>" in dialog for key in keys)
    assert "places" in dialog
    assert len({key for _, _, key in PLACES}) == len(PLACES)


def test_sign_in_page_suggests_a_token_that_can_work() -> None:
    command = re.findall(r"<pre>(tenure token create .+)</pre>", template("sign-in.html"))
    words = shlex.split(command[0])
    [role] = [words[n + 1] for n, word in enumerate(words) if word == "--role"]
    assert role_scopes(role) == (Scope.READ, Scope.PAYLOAD_READ, Scope.OPERATE)


def test_forms_allow_the_highest_rate_and_no_more() -> None:
    for name in ("schedule.html", "starting.html"):
        [rate] = re.findall(r'<input[^>]*name="rate"[^>]*>', template(name))
        assert f'max="{FASTEST}"' in rate, name


def test_audit_page_names_the_number_of_rows_that_are_searched() -> None:
    assert f"up to {_SEARCHED:,} rows" in template("audit.html")

"""What must not be shown is not shown: by field for sure, in texts as well as can be."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure._rules import access
from tenure._rules.redaction import BUILT_IN, HIDDEN, Redactor
from tests.timing import median, seconds

PLAIN = Redactor()
OURS = access.secret(bytes(32))
keys = st.sampled_from(["name", "password", "x", "customer", "iban", "apiKey", "list", "note"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "key",
    [
        *BUILT_IN,
        *(
            "Password",
            "DB_PASSWORD",
            "dbPassword",
            "smtp-password",
            "password2",
            "userPasswordHash",
        ),
        *("Authorization", "X-Auth-Token", "refreshToken", "Set-Cookie", "client_secret"),
        *("apiKey", "API_KEY", "stripeAPIKey", "X-Api-Key", "aws_access_key_id", "privateKey"),
    ],
)
def test_a_field_is_hidden_by_the_words_of_its_name(key: str) -> None:
    assert PLAIN.value({key: "hunter2"}) == {key: HIDDEN}
    assert PLAIN.value({"a": [{key: {"deep": [1, "hunter2"]}}]}) == {"a": [{key: HIDDEN}]}


@pytest.mark.parametrize(
    "key", ["author", "secretary", "max_tokens", "tokenizer", "keyboard", "compass", "accesskeys"]
)
def test_a_field_that_only_sounds_alike_is_shown(key: str) -> None:
    assert PLAIN.value({key: "shown"}) == {key: "shown"}


def test_nothing_in_a_hidden_field_is_shown_as_nothing() -> None:
    assert PLAIN.value({"password": None, "token": "", "secret": 0}) == {
        "password": None,
        "token": HIDDEN,
        "secret": HIDDEN,
    }


def test_declared_names_are_hidden_too_and_a_path_only_where_it_leads() -> None:
    some = Redactor(["ssn", "customer.iban"])
    args = {
        "ssn": 123,
        "customer": {"IBAN": "DE1", "name": "Ada"},
        "customers": [{"customer": [{"iban": "DE2"}]}],
        "iban": "shown",
        "bank": {"iban": "shown"},
    }
    assert some.value(args) == {
        "ssn": HIDDEN,
        "customer": {"IBAN": HIDDEN, "name": "Ada"},
        "customers": [{"customer": [{"iban": HIDDEN}]}],
        "iban": "shown",
        "bank": {"iban": "shown"},
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no such host", "no such host"),
        ("postgresql://ana:geheim@db:5432/x is away", f"postgresql://{HIDDEN}@db:5432/x is away"),
        ("at 'redis://:geheim@h/0'", f"at 'redis://{HIDDEN}@h/0'"),
        ("amqp://u:ge@heim/x@h", f"amqp://{HIDDEN}@h"),
        ("https://geheim@github.com/x", f"https://{HIDDEN}@github.com/x"),
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("https://x.org/?token=geheim&b=c", f"https://x.org/?token={HIDDEN}&b=c"),
        ("host=db password=geheim user=ana", f"host=db password={HIDDEN} user=ana"),
        ("password = 'ge heim' port=1", f"password = '{HIDDEN}' port=1"),
        ("{'api_key': 'geheim', 'a': 1}", f"{{'api_key': '{HIDDEN}', 'a': 1}}"),
        ('{"password": "ge\\"heim"}', f'{{"password": "{HIDDEN}"}}'),
        ("Authorization: Bearer geheim", f"Authorization: {HIDDEN}"),
        ("authorization=Basic geheim, x", f"authorization={HIDDEN}, x"),
        ("DB_PASSWORD=geheim", f"DB_PASSWORD={HIDDEN}"),
        ("smtp.password: geheim", f"smtp.password: {HIDDEN}"),
        (f"with {OURS}.", f"with {HIDDEN}."),
        ("line 3: a token was expected", "line 3: a token was expected"),
        ("lost tl_AAAAAAAAAAAAAAAAAAAAAAAA_-x, sorry", f"lost {HIDDEN}, sorry"),
        (
            'violates "c"\nDETAIL:  Failing row contains (1, geheim, (x).).\nHINT: none',
            f'violates "c"\nDETAIL:  Failing row contains ({HIDDEN}).\nHINT: none',
        ),
        (
            "DETAIL:  Failing row contains (1, geheim). (SQLSTATE 23514)",
            f"DETAIL:  Failing row contains ({HIDDEN}). (SQLSTATE 23514)",
        ),
        ('CONTEXT:  JSON data, line 1: {"a": geheim', f"CONTEXT:  JSON data, line 1: {HIDDEN}"),
        ("Key (email)=(a@b.c) already exists.", "Key (email)=(a@b.c) already exists."),
    ],
)
def test_secrets_are_found_in_texts_by_their_names_and_forms(text: str, shown: str) -> None:
    assert PLAIN.text(text) == shown
    assert PLAIN.value({"note": text})["note"] == shown


def test_what_a_hidden_field_holds_is_hidden_wherever_it_is_told() -> None:
    args = {"login": {"password": "hunter2", "pin_token": 123456, "pwd": "ab"}, "to": "Ada"}
    known = PLAIN.values(args)
    assert known == ("hunter2", "123456")
    told = "cannot log in with hunter2 as Ada; pin 123456; ab"
    assert PLAIN.text(told, known) == f"cannot log in with {HIDDEN} as Ada; pin {HIDDEN}; ab"


@given(values, st.lists(st.sampled_from(["ssn", "iban", "customer.iban"])))
def test_what_is_shown_has_the_same_shape_and_nothing_of_hidden_fields(
    value: Any, names: list[str]
) -> None:
    some = Redactor(names)
    before = json.dumps(value)
    shown = some.value(value)
    assert json.dumps(value) == before
    assert some.values(shown) in ((), (HIDDEN,))
    assert some.value(shown) == shown


@given(st.text(), st.text("0123456789abcdef", min_size=12, max_size=40))
def test_a_secret_under_any_hidden_name_at_any_depth_is_gone(key: str, secret: str) -> None:
    assume(secret not in key)
    value: Any = {"password": {key: [secret, {"x": secret}]}, "other": f"it was {secret}!"}
    for _ in range(30):
        value = [{key: value}]
    assert secret not in json.dumps(PLAIN.value(value, PLAIN.values(value)))


@given(st.text())
def test_a_text_can_be_searched_again_and_stays(text: str) -> None:
    once = PLAIN.text(text)
    assert PLAIN.text(once) == once


def test_what_lies_too_deep_to_look_at_is_not_shown() -> None:
    value: Any = {"password": "hunter2"}
    for _ in range(100):
        value = {"a": value}
    assert "hunter2" not in json.dumps(PLAIN.value(value))
    assert HIDDEN in json.dumps(PLAIN.value(value))


@pytest.mark.timing
@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "a=" * 100_000,
        'a="' * 100_000,
        "a.b-" * 75_000,
        "x://" * 75_000,
        "@" * 300_000,
        "password: '\\" * 30_000,
        "password" + " " * 300_000,
        OURS[:-1] * 6_000,
        "Failing row contains (" * 13_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    """A cost that grows with the square of the text would be minutes."""
    assert median(lambda: seconds(lambda: PLAIN.text(text), time.process_time)) < 2

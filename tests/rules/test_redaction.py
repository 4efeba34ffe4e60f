"""What must not be shown is not shown: by field for sure, in texts as well as can be."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from support.secret_shapes import texts
from support.secret_shapes import values as shapes
from tenure._model.ids import JobId, Token
from tenure._model.job import JobRow, State
from tenure._model.stats import Count, FailedGroup
from tenure._rules import access
from tenure._rules.redaction import HIDDEN, Redactor
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
        *("password", "passwords", "passwd", "pwd", "passphrase", "secret", "secrets", "token"),
        *("authorization", "cookie", "cookies", "credential", "credentials", "api_key", "apikey"),
        *("access_key", "private_key"),
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
    "key", ["author", "secretary", "max_tokens", "tokenizer", "keyboard", "compass", "tokens_used"]
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
    some = Redactor(["birthday", "customer.phone"])
    args = {
        "birthday": 123,
        "customer": {"PHONE": "1", "name": "Ada"},
        "customers": [{"customer": [{"phone": "2"}]}],
        "phone": "shown",
        "shop": {"phone": "shown"},
    }
    assert some.value(args) == {
        "birthday": HIDDEN,
        "customer": {"PHONE": HIDDEN, "name": "Ada"},
        "customers": [{"customer": [{"phone": HIDDEN}]}],
        "phone": "shown",
        "shop": {"phone": "shown"},
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


def test_hidden_field_is_hidden_on_every_surface() -> None:
    args = {"login": {"password": "hunter2", "pin_token": 123456, "pwd": "ab"}, "to": "Ada"}
    known = PLAIN.values(args)
    assert known == ("hunter2", "123456")
    output = "cannot log in with hunter2 as Ada; pin 123456; ab"
    assert PLAIN.text(output, known) == f"cannot log in with {HIDDEN} as Ada; pin {HIDDEN}; ab"


def test_items_and_groups_hide_the_values_of_their_jobs_hidden_fields() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    job = JobRow(
        JobId(1), State.FAILED, "q", "t", {"password": "hunter2"}, 5, 1, 1, 0, Token(1), at, at
    )
    text, hidden = "no login with hunter2", f"no login with {HIDDEN}"
    assert PLAIN.items({"1": {"note": text}}, of=job) == {"1": {"note": hidden}}
    group = FailedGroup("t", f"E: {text}", Count(1), at, at, [1], job.id, "E", text)
    shown = PLAIN.group(group, of=job)
    assert (shown.signature, shown.error_message) == (f"E: {hidden}", hidden)


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


CANARY = "zq9huntertwoxk4mpv7rw3ab"


@pytest.mark.parametrize(("name", "text"), texts(CANARY).items())
def test_every_shape_of_a_secret_is_hidden_in_a_text(name: str, text: str) -> None:
    found = CANARY[:16]
    assert found in text, name
    shown = PLAIN.text(text)
    assert found not in shown
    assert PLAIN.text(shown) == shown
    around = PLAIN.text(f"it is {text}\nit ended")
    assert found not in around
    assert around.startswith("it is ")


def test_every_shape_of_a_secret_is_hidden_in_a_value() -> None:
    some = shapes(CANARY)
    assert len(some) > 100
    shown = {name: PLAIN.value(value) for name, value in some.items()}
    assert [name for name, value in shown.items() if CANARY[:16] in json.dumps(value)] == []
    assert shown["list of pairs"]["headers"] == [["Authorization", HIDDEN], ["Accept", "x"]]
    assert shown["options"]["argv"] == ["run", "--password", HIDDEN, "--verbose"]


@pytest.mark.parametrize(
    "text",
    [
        *("max_tokens=100", "author: Ada", "a basic understanding", "mkdir -p a/b"),
        *("psql -p 5432", "token_count: 7", "<tokenizer>fast</tokenizer>", "inside: 4"),
        *("the pass went well", "Key (id)=(7) already exists.", "https://example.org/secrets/7"),
    ],
)
def test_what_only_sounds_like_a_secret_is_shown(text: str) -> None:
    assert PLAIN.text(text) == text


pieces = st.sampled_from(
    [
        *("password", "token", "pin", "Cookie", "Authorization", "Bearer ", "key (", "$1 = ", "--"),
        *("=", ":", ", ", "'", '"', "\\", "[", "]", "(", ")", "{", "}", "<", ">", " ", "\n", "@"),
        *("://", "x", "7", HIDDEN, "…", "Failing row contains (", ").", "-p ", "b'", "value", "/"),
    ]
)


@given(st.lists(pieces, max_size=25).map("".join))
@example("password=[]password")
def test_a_text_of_all_signs_stays_when_searched_again(text: str) -> None:
    once = PLAIN.text(text)
    assert PLAIN.text(once) == once


def test_long_text_is_cut_and_the_cut_shows_no_half_secret() -> None:
    long = "x " * 32_000 + " password=" + "s" * 70_000
    shown = PLAIN.text(long)
    assert len(shown) < 66_000
    assert shown.endswith("more characters)")
    assert "ssss" not in shown
    known = "s" * 100
    halved = "x" * (64 * 1024 - 50) + known
    assert "sss" not in PLAIN.text(halved, [known])


def hostile() -> dict[str, Any]:
    """Arguments of about 250 KiB that cost the most, beside ordinary ones."""
    tokens = {f"token{n}": f"{n:05d}zz" for n in range(1000)}
    return {
        "pairs": {"s": "a=" * 125_000},
        "names": {f"k{n}": 1 for n in range(22_000)},
        "names of many words": {f"aBcDeFgHiJ{n}": 1 for n in range(12_000)},
        "names that nearly are": {f"aPinC{n}": 1 for n in range(18_000)},
        "short texts": {"l": ["a=a"] * 40_000},
        "secrets and short texts": {**tokens, "l": ["b"] * 40_000},
        "secrets found": {**tokens, "l": [f"{n % 1000:05d}zz" for n in range(20_000)]},
        "secrets nearly found": {**tokens, "s": "0000" * 50_000},
        "nested": {f"k{n}": {"a": {"b": {"c": 1}}} for n in range(8_000)},
        "many secrets": {"l": ["token=a"] * 22_000},
    }


@pytest.mark.timing
@pytest.mark.parametrize("name", hostile())
def test_no_payload_costs_much_more_than_an_ordinary_one(name: str) -> None:
    """Before, the worst took 2.7 s: 200 times an ordinary payload of the same length."""
    plain = {"rows": [{"id": n, "name": "Ada L", "note": "hello there"} for n in range(5_000)]}

    def cost(value: Any) -> float:
        def redact() -> None:
            PLAIN.value(value, PLAIN.values(value))

        taken = median(lambda: seconds(redact, time.process_time))
        return taken / len(json.dumps(value))

    assert cost(hostile()[name]) < 12 * cost(plain)


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
        *("-p " * 90_000, "key (" * 50_000, "eyJ" * 90_000, "token " * 50_000, "pw=x " * 50_000),
        *("-----BEGIN PRIVATE KEY-----" * 10_000, "password: [" * 25_000, "<token " * 40_000),
    ],
)
def test_no_text_takes_long(text: str) -> None:
    """A cost that grows with the square of the text would be minutes."""
    assert median(lambda: seconds(lambda: PLAIN.text(text), time.process_time)) < 1


def test_a_key_of_an_item_does_not_show_a_hidden_value() -> None:
    """An item's key is the job's own text: it may be what a hidden field holds."""
    at = datetime(2026, 11, 18, tzinfo=UTC)
    args = {"password": CANARY}
    job = JobRow(JobId(7), State.RUNNING, "q", "t", args, 5, 1, 3, 0, Token(1), at, at)
    shown = PLAIN.items({f"login {CANARY}": {"n": 1}, "plain": {"n": 2}}, of=job)
    assert shown == {"login <redacted>": {"n": 1}, "plain": {"n": 2}}


def test_a_job_without_its_arguments_hides_the_texts_that_may_quote_them() -> None:
    """A list leaves large arguments out, and with them the values that they hide."""
    at = datetime(2026, 11, 18, tzinfo=UTC)
    job = JobRow(JobId(7), State.RUNNING, "q", "t", None, 5, 1, 3, 0, Token(1), at, at)
    job.key, job.progress = "by hunter22", {"at": "12:00", "done": 1, "message": "hunter22"}
    shown = PLAIN.job(job)
    assert shown.progress == {"at": "12:00", "done": 1, "message": HIDDEN}
    assert (shown.key, shown.args) == (HIDDEN, None)

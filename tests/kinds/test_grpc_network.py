"""Where gRPC work may connect to, TLS, client certificates, and secrets in metadata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Tenure
from tenure._model.job import State
from tenure.config import DEFAULTS
from tenure.kinds.grpc import channels, schema
from tenure.kinds.http.lookup import look_up
from tests.kinds import grpc_stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from support.store import Database
    from tenure._model.job import JobRow
    from tenure.kinds.http.addresses import Address
    from tests.kinds.grpc_stage import Stage

PLACE = "shop.Orders/Place"
BEARER = {"authorization": {"secret": "shop", "prefix": "Bearer "}}
SECRET = "s3cr3t-of-the-shop"  # noqa: S105 - made up


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with grpc_stage.started(tmp_path_factory.mktemp("grpc")) as stage:
        yield stage


@pytest.fixture(autouse=True)
def configured(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.clear()
    schema.SCHEMAS._schemas.clear()
    configure(monkeypatch, stage.settings())


def configure(monkeypatch: pytest.MonkeyPatch, table: dict[str, Any]) -> None:
    monkeypatch.setenv("TENURE_KINDS_GRPC", json.dumps(table))


@pytest.fixture
async def app(db: Database) -> AsyncIterator[Tenure]:
    app = Tenure(db.url, defaults=DEFAULTS.scaled(0.1))
    async with app.run(kinds=["grpc"]):
        yield app
    await channels.channels().close()
    await app.aclose()


async def ended(app: Tenure, *call: Any, **more: Any) -> JobRow:
    handle = await app.grpc(*call, **more).using(max_attempts=1, timeout=5).aenqueue()
    await handle.wait_async(15)
    row = await handle.aget()
    assert row is not None
    return row


async def attempt_of(app: Tenure, row: JobRow) -> Any:
    [attempt] = await app.admin.jobs.aattempts(row.id)
    return attempt


async def error(app: Tenure, *call: Any, **more: Any) -> str:
    row = await ended(app, *call, **more)
    assert row.state is State.FAILED
    attempt = await attempt_of(app, row)
    return f"{attempt.error_type}: {attempt.error_message}"


async def test_tls_is_the_default_and_the_authority_is_configured(
    app: Tenure, stage: Stage
) -> None:
    row = await ended(app, stage.target("tls"), PLACE, {"item": "tea"})

    assert row.state is State.COMPLETED


async def test_a_certificate_of_an_unknown_authority_is_refused(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = str(stage.directory / "stranger.pem")
    configure(monkeypatch, stage.settings(ca_file=stranger))
    strange = await error(app, stage.target("tls"), PLACE)
    configure(monkeypatch, {"allow": stage.settings()["allow"]})
    public = await error(app, stage.target("tls"), PLACE)

    assert "UNAVAILABLE" in strange
    assert "UNAVAILABLE" in public
    assert not stage.requests()


async def test_a_certificate_for_another_name_is_refused(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate is for localhost, the job calls the address."""
    target = stage.target("tls", host="127.0.0.1")
    configure(monkeypatch, stage.settings(allow=["127.0.0.0/8:*"]))

    why = await error(app, target, PLACE)

    assert "UNAVAILABLE" in why
    assert not stage.requests()


async def test_plaintext_needs_the_configuration(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, stage.settings(plaintext=[]))

    why = await error(app, stage.target(), PLACE)

    assert "UNAVAILABLE" in why
    assert not stage.requests()


async def test_a_client_certificate_belongs_to_a_target(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = await error(app, stage.target("mutual"), PLACE)
    files = {kind: str(stage.directory / f"client.{kind}") for kind in ("pem", "key")}
    pair = {"cert": files["pem"], "key": files["key"]}
    configure(monkeypatch, stage.settings(certificates={stage.target("mutual"): pair}))

    row = await ended(app, stage.target("mutual"), PLACE, {"item": "tea"})

    assert "UNAVAILABLE" in without
    assert row.state is State.COMPLETED


@pytest.mark.parametrize(
    "target",
    [
        "127.0.0.1:{port}", "[::1]:{port}", "localhost:{port}", "2130706433:{port}",
        "0x7f.1:{port}", "[::ffff:127.0.0.1]:{port}", "0.0.0.0:{port}", "127.1:{port}",
        "10.0.0.1:443", "192.168.0.1:443", "169.254.169.254:443", "169.254.169.254:80",
        "[fd00:ec2::254]:443", "[64:ff9b::7f00:1]:443", "metadata.google.internal:443",
        "100.64.0.1:443", "224.0.0.1:443", "[fe80::1]:443", "8.8.8.8:50051",
    ],
)  # fmt: skip
async def test_addresses_outside_the_rules_are_never_connected_to(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    configure(monkeypatch, {})

    why = await error(app, target.format(port=stage.ports["plain"]), PLACE)

    assert "Refused" in why or "could not be looked up" in why
    assert not stage.requests()


async def test_the_name_is_resolved_once_and_the_call_goes_to_that_address(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second lookup could answer with a private address."""
    lookups: list[str] = []

    async def counted(host: str, port: int) -> Sequence[Address]:
        lookups.append(host)
        return await look_up("127.0.0.1", port)

    monkeypatch.setattr(channels, "look_up", counted)
    target = stage.target(host="rebinding.example")
    configure(monkeypatch, {"allow": [target], "plaintext": [target]})

    row = await ended(app, target, PLACE, {"item": "tea"})

    assert row.state is State.COMPLETED
    assert lookups == ["rebinding.example"]


async def test_a_proxy_of_the_environment_is_not_used(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("grpc_proxy", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    row = await ended(app, stage.target("tls"), PLACE, {"item": "tea"})

    assert row.state is State.COMPLETED


async def test_a_secret_goes_to_its_targets_and_stays_out_of_what_is_stored(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TENURE_SECRET_SHOP", f"{SECRET} older-secret")
    configure(monkeypatch, stage.settings(secrets={"shop": [stage.target("tls")]}))
    sent = await ended(
        app, stage.target("tls"), PLACE, {"item": "echo:authorization"}, metadata=BEARER
    )
    more = {"metadata": {"x-api-key": {"secret": "shop"}}}
    denied = await ended(
        app, stage.target("tls"), PLACE, {"item": "echo:x-api-key", "number": 1}, **more
    )
    other = await error(app, stage.target(), PLACE, {"item": "tea"}, metadata=BEARER)

    assert stage.requests()[0]["metadata"]["authorization"] == f"Bearer {SECRET}"
    assert stage.requests()[1]["metadata"]["x-api-key"] == SECRET
    assert sent.result["response"]["text"] == "you sent 'Bearer [secret]'"
    assert "the secret 'shop' must not be sent to" in other
    assert not stage.requests(item="tea")
    stored = [sent, denied, await attempt_of(app, sent), await attempt_of(app, denied)]
    assert SECRET not in repr(stored)
    assert SECRET not in caplog.text


async def test_a_worker_without_the_secret_retries(
    app: Tenure, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may have it."""
    configure(monkeypatch, stage.settings(secrets={"shop": stage.target("tls")}))

    why = await error(app, stage.target("tls"), PLACE, metadata=BEARER)

    assert why.startswith("ConfigError")
    assert "TENURE_SECRET_SHOP" in why

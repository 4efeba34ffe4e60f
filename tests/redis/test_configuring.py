"""Where the Redis comes from, and what is said when it does not fit."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from support.daemons import Redis
from tenure import Tenure
from tenure._notifier_redis import RedisNotifier
from tenure.errors import ConfigError, Unreachable

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENT, ENVIRONMENT, FILE = (f"redis://{name}/0" for name in ("argument", "environment", "file"))


def _host(app: Tenure) -> str | None:
    bell = app.engine.notifier
    if bell is None:
        return None
    assert isinstance(bell, RedisNotifier)
    return bell._place.url


def test_an_argument_is_stronger_than_the_environment_and_that_than_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TENURE_REDIS_URL", raising=False)
    url = "postgresql://nobody@localhost/none"
    assert _host(Tenure(url)) is None
    (tmp_path / "tenure.toml").write_text(f'redis_url = "{FILE}"')
    assert _host(Tenure(url)) == FILE
    monkeypatch.setenv("TENURE_REDIS_URL", ENVIRONMENT)
    assert _host(Tenure(url)) == ENVIRONMENT
    assert _host(Tenure(url, redis=ARGUMENT)) == ARGUMENT
    assert _host(Tenure(url, redis="")) is None


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'pip install "tenure\[redis\]"'):
        Tenure("postgresql://nobody@localhost/none", redis=ARGUMENT).engine  # noqa: B018 - made when asked for


async def test_option_unknown_to_redis_py_is_refused() -> None:
    bell = RedisNotifier("redis://127.0.0.1:1/0?wrong=1", schema="tenure")
    with pytest.raises(Unreachable, match="wrong"):
        bell.check()
    with pytest.raises(Unreachable, match="wrong"):
        await anext(bell.listen())


def test_redis_is_checked_and_its_password_is_never_printed() -> None:
    with Redis(password="hush-hush") as redis:  # noqa: S106 - of a server that ends with the test
        RedisNotifier(redis.url, schema="tenure").check()
        wrong = redis.url.replace("hush-hush", "wrong-word")
        with pytest.raises(Unreachable, match="Redis is not responding") as caught:
            RedisNotifier(wrong, schema="tenure").check()
        assert "wrong-word" not in str(caught.value)
    with pytest.raises(Unreachable, match="Redis is not responding"):
        RedisNotifier(redis.url, schema="tenure").check()

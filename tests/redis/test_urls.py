"""Redis URLs: one server's, or its Sentinels'; what cannot be read is refused without its text."""

from __future__ import annotations

import pytest

from tenure._notifier_redis import redis_address
from tenure.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "db"),
    [
        ("redis://localhost", 0),
        ("redis://localhost:6380/3", 3),
        ("redis://:secret@localhost/1", 1),
        ("rediss://user:secret@host:6380/0", 0),
        ("redis://localhost?db=4", 4),
        ("unix:///run/redis.sock", 0),
        ("unix:///run/redis.sock?db=2", 2),
    ],
)
def test_what_redis_py_reads_is_passed_on(url: str, db: int) -> None:
    found = redis_address(url)
    assert (found.url, found.db, found.sentinels) == (url, db, ())


def test_sentinels_are_named_with_their_service_and_what_is_for_them_alone() -> None:
    found = redis_address(
        "redis+sentinel://user:secret@one,two:26380,[::1]:5000/my%20master/2"
        "?socket_timeout=3&sentinel_password=other"
    )
    assert found.sentinels == (("one", 26379), ("two", 26380), ("::1", 5000))
    assert found.service == "my master"
    assert found.db == 2
    assert found.url == "redis://user:secret@master/2?socket_timeout=3"
    assert found.sentinel_options == (("password", "other"),)


def test_a_service_without_a_number_is_database_0_and_tls_is_kept() -> None:
    found = redis_address("rediss+sentinel://one/service")
    assert (found.db, found.url) == (0, "rediss://master/0")


def test_a_cluster_has_a_url_for_each_node_and_a_number_only_in_the_channels_name() -> None:
    found = redis_address("rediss+cluster://user:secret@one,two:6380,[::1]:7000/3?ssl_ca_certs=ca")
    assert found.nodes == (
        "rediss://user:secret@one:6379?ssl_ca_certs=ca",
        "rediss://user:secret@two:6380?ssl_ca_certs=ca",
        "rediss://user:secret@[::1]:7000?ssl_ca_certs=ca",
    )
    assert (found.db, found.sentinels) == (3, ())
    assert redis_address("redis+cluster://one").nodes == ("redis://one:6379",)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "http://secret@localhost",
        "redis://localhost/secret",
        "redis+sentinel://secret",
        "redis+sentinel://secret:x@/service",
        "redis+sentinel://one:secret/service",
        "redis+sentinel://one/service/secret",
        "sentinel://one/secret",
        "redis+cluster://",
        "redis+cluster://one,,secret",
        "redis+cluster://one:secret",
        "redis+cluster://one/secret",
        "redis+cluster://secret?db=1",
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match=r"redis\+sentinel://host1,host2/service/0") as caught:
        redis_address(url)
    assert "secret" not in str(caught.value)


def test_passwords_are_not_shown() -> None:
    assert "secret" not in repr(
        redis_address("redis+sentinel://:secret@a/b?sentinel_password=secret")
    )
    assert "secret" not in repr(redis_address("redis+cluster://:secret@a,b"))

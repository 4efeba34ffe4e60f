"""Which addresses a worker connects to, and which never."""

from __future__ import annotations

import json
import subprocess
import sys
from ipaddress import ip_address, ip_network
from shutil import which
from typing import Any

import pytest

from support.binaries import ROOT
from support.namespace import available
from tenure.errors import ConfigError, InvalidValue
from tenure.kinds.http.addresses import AddressRefused, AddressRules, read_entry, special_kind
from tenure.kinds.http.url import read_url
from tests.kinds.ssrf_corpus import CORPUS, PUBLIC, REFUSED_NETWORKS


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    """The corpus in a network where every address answers."""
    if not available():
        pytest.skip("needs root, for a network namespace")
    done = subprocess.run(
        [
            which("unshare") or "",
            "--net",
            "--mount",
            sys.executable,
            "-m",
            "tests.kinds.ssrf_world",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=110,
    )
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_no_url_of_the_corpus_reaches_anything(world: dict[str, Any]) -> None:
    assert len(set(CORPUS)) >= 300
    assert world["seen"] == []
    wrong = {
        url: outcome
        for url, outcome in world["refused"].items()
        if outcome != "invalid" and not outcome.startswith("AddressRefused")
    }
    assert wrong == {}


def test_public_addresses_are_reached_at_the_address_that_was_checked(
    world: dict[str, Any],
) -> None:
    assert world["public"] == dict.fromkeys(PUBLIC, "200")
    assert world["public_seen"] == ["93.184.216.34 80"] * 2 + ["2606:4700::1111 80"]


def test_a_name_that_rebinds_never_reaches_its_second_address(world: dict[str, Any]) -> None:
    outcomes = {outcome.partition(":")[0] for outcome in world["rebound"]}
    assert outcomes == {"200", "AddressRefused"}
    assert set(world["rebound_seen"]) == {"93.184.216.34 80"}


@pytest.mark.parametrize("network", REFUSED_NETWORKS)
def test_special_networks_are_not_public(network: str) -> None:
    edges = ip_network(network)
    assert special_kind(edges[0]) is not None
    assert special_kind(edges[-1]) is not None


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::5", "11.0.0.1"]
)
def test_other_addresses_are_public(address: str) -> None:
    assert special_kind(ip_address(address)) is None
    AddressRules().check("example.com", 443, [ip_address(address)])


@pytest.mark.parametrize(
    ("allow", "host", "port", "address"),
    [
        ("api.internal", "api.internal", 443, "10.0.0.5"),
        ("api.internal:8080", "api.internal", 8080, "10.0.0.5"),
        ("*.svc.local:*", "a.b.svc.local", 9000, "fd00::5"),
        ("10.0.0.0/8", "any.example", 80, "10.9.9.9"),
        ("10.0.0.0/8:9000", "any.example", 9000, "10.9.9.9"),
        ("127.0.0.1:8080", "localhost", 8080, "127.0.0.1"),
        ("[::1]:8080", "localhost", 8080, "::1"),
        ("fd00::/8", "any.example", 443, "fd00::5"),
        ("cafe:8080", "cafe", 8080, "192.168.0.5"),
        ("169.254.169.254", "any.example", 80, "169.254.169.254"),
        ("hooks.example:8443", "hooks.example", 8443, "1.1.1.1"),
        ("64:ff9b::/96", "any.example", 443, "64:ff9b::101:101"),
    ],
)
def test_an_allowlist_opens_what_it_names(allow: str, host: str, port: int, address: str) -> None:
    rules = AddressRules([read_entry(allow, "allow")])
    rules.check(host, port, [ip_address(address)])
    with pytest.raises(AddressRefused):
        AddressRules().check(host, port, [ip_address(address)])


@pytest.mark.parametrize(
    ("allow", "host", "port", "address"),
    [
        ("api.internal", "api.internal", 8080, "10.0.0.5"),
        ("api.internal:8080", "api.internal", 80, "10.0.0.5"),
        ("api.internal", "other.internal", 80, "10.0.0.5"),
        ("*.svc.local", "svc.local", 80, "10.0.0.5"),
        ("*.svc.local", "evilsvc.local", 80, "10.0.0.5"),
        ("10.0.0.0/8", "any.example", 80, "192.168.0.1"),
        # A name can point anywhere, so a name alone doesn't open these.
        ("api.internal", "api.internal", 80, "169.254.169.254"),
        ("api.internal", "api.internal", 80, "0.0.0.0"),  # noqa: S104 - refused
        ("api.internal", "api.internal", 80, "224.0.0.1"),
        ("api.internal", "api.internal", 80, "::ffff:10.0.0.5"),
        # A translator would forward to what it carries.
        ("64:ff9b::/96", "any.example", 80, "64:ff9b::a9fe:a9fe"),
        ("::/0", "any.example", 80, "::ffff:127.0.0.1"),
    ],
)
def test_an_allowlist_opens_nothing_else(allow: str, host: str, port: int, address: str) -> None:
    with pytest.raises(AddressRefused):
        AddressRules([read_entry(allow, "allow")]).check(host, port, [ip_address(address)])


def test_one_refused_address_of_several_refuses_the_host() -> None:
    both = [ip_address("1.1.1.1"), ip_address("10.0.0.1")]
    with pytest.raises(AddressRefused) as refused:
        AddressRules().check("example.com", 443, both)
    assert "10.0.0.1" not in str(refused.value)


def test_a_worker_can_be_limited_to_its_allowlist() -> None:
    rules = AddressRules([read_entry("api.example.com", "allow")], public=False)
    rules.check("api.example.com", 443, [ip_address("1.1.1.1")])
    with pytest.raises(AddressRefused, match="calls only hosts that are"):
        rules.check_host("other.example.com", 443)


@pytest.mark.parametrize(
    "entry",
    [7, "", "https://api", "api/path", "10.0.0.1/8", "10.0.0.300", "a:70000", "a:0", "*", "a b"],
)
def test_an_entry_that_is_neither_host_nor_network_is_refused(entry: object) -> None:
    with pytest.raises(ConfigError, match="must be a list of hosts and networks"):
        read_entry(entry, "allow")


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("https://Example.COM", "https://example.com", "/"),
        ("https://example.com.:443/a?b=c", "https://example.com", "/a?b=c"),
        ("http://example.com:8080?x", "http://example.com:8080", "/?x"),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080", "/"),
        ("https://example.com/ü/%20", "https://example.com", "/%C3%BC/%20"),
        ("http://1.1.1.1/", "http://1.1.1.1", "/"),
    ],
)
def test_urls_are_read_in_one_way(text: str, origin: str, target: str) -> None:
    url = read_url(text)
    assert (url.origin, url.target) == (origin, target)


def test_a_refused_url_is_not_repeated() -> None:
    with pytest.raises(InvalidValue) as refused:
        read_url("https://ada:hunter2@example.com/")
    assert "hunter2" not in str(refused.value)

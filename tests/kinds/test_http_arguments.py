"""What an enqueue of HTTP work accepts, and what a worker's configuration may say."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Tenure
from tenure.errors import ConfigError, InvalidValue
from tenure.kinds import http
from tenure.kinds.http.configuration import parse_configuration
from tenure.kinds.http.request import SecretHeader, read_request

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kinds.conftest import Configure

URL = "https://example.com/hook"
app = Tenure("postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "url must be a text"),
        ({"url": URL, "uri": "x"}, "must have only the fields"),
        ({"url": URL, "method": "CONNECT"}, "method must be one of"),
        ({"url": URL, "method": 7}, "method must be one of"),
        ({"url": URL, "json": 1, "body": "x"}, "give only one of"),
        ({"url": URL, "json": 1, "method": "GET"}, "json must be omitted for GET"),
        ({"url": URL, "body": 7}, "body must be a text"),
        ({"url": URL, "body_base64": "?"}, "body_base64 must be base64"),
        ({"url": URL, "headers": ["x"]}, "headers must be an object"),
        ({"url": URL, "headers": {"a b": "x"}}, "a header's name must be"),
        ({"url": URL, "headers": {"": "x"}}, "a header's name must be"),
        ({"url": URL, "headers": {"X": "a\r\nb"}}, "printable ASCII characters on one line"),
        ({"url": URL, "headers": {"X": "é"}}, "printable ASCII"),
        ({"url": URL, "headers": {"X": 7}}, "printable ASCII"),
        ({"url": URL, "headers": {"X": "y" * 5000}}, "at most 4,096"),
        ({"url": URL, "headers": {"Host": "x"}}, "must not contain Host"),
        ({"url": URL, "headers": {"content-length": "1"}}, "must not contain content-length"),
        ({"url": URL, "headers": {"Transfer-Encoding": "x"}}, "must not contain Transfer-Enc"),
        ({"url": URL, "headers": {"Webhook-Id": "x"}}, "must not contain Webhook-Id"),
        ({"url": URL, "headers": {"Proxy-Authorization": "x"}}, "must not contain Proxy-Auth"),
        ({"url": URL, "headers": {"A": "1", "a": "2"}}, "must contain a once"),
        ({"url": URL, "headers": {"Authorization": "Bearer hunter2"}}, "must name a secret"),
        ({"url": URL, "headers": {"X-Api-Key": "hunter2"}}, "must name a secret"),
        ({"url": URL, "headers": {"Cookie": "hunter2"}}, "must name a secret"),
        ({"url": URL, "headers": {"X": {"secret": "a b"}}}, "header X must name a secret"),
        ({"url": URL, "headers": {"X": {"secret": "a", "x": 1}}}, "header X must name a secret"),
        ({"url": URL, "headers": {"X": {"secret": "a", "prefix": "\n"}}}, "must name a secret"),
        ({"url": URL, "secret": "whsec_hunter2=="}, "secret must be a name"),
        ({"url": URL, "certificate": "../x"}, "certificate must be a name"),
        ({"url": "http://example.com/", "certificate": "x"}, "must begin with https"),
        ({"url": URL, "timeout": 0}, "timeout must be more than 0"),
        ({"url": URL, "timeout": 301}, "timeout must be more than 0"),
        ({"url": URL, "timeout": True}, "timeout must be more than 0"),
    ],
)
def test_an_invalid_argument_is_refused_with_its_rule(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        http.check(arguments)
    assert says in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_methods_make_the_arguments_of_a_job() -> None:
    call = app.http.post(URL, json={"a": 1}, headers={"X": "y"}, secret="orders", timeout=7)  # noqa: S106 - a name
    assert call.task == "tenure.http"
    assert call.arguments == {
        "method": "POST",
        "url": URL,
        "json": {"a": 1},
        "headers": {"X": "y"},
        "secret": "orders",
        "timeout": 7,
    }
    assert app.http.get(URL).arguments == {"method": "GET", "url": URL}
    assert app.http.put(URL, body="x").arguments["body"] == "x"
    assert app.http.patch(URL, body=b"\xff").arguments["body_base64"] == "/w=="
    assert app.http.delete(URL, timeout=timedelta(minutes=1)).arguments["timeout"] == 60
    assert app.http.request("OPTIONS", URL).arguments["method"] == "OPTIONS"


def test_a_call_is_checked_before_it_is_enqueued() -> None:
    with pytest.raises(InvalidValue, match="must begin with http"):
        app.http.get("ftp://example.com/")


def test_bodies_become_bytes_with_a_type() -> None:
    json_body = read_request({"url": URL, "json": {"a": "é"}})
    assert (json_body.body, json_body.headers) == (
        '{"a":"é"}'.encode(),
        {"content-type": "application/json"},
    )
    text = read_request({"url": URL, "body": "é", "headers": {"Content-Type": "text/csv"}})
    assert (text.body, text.headers) == ("é".encode(), {"content-type": "text/csv"})
    raw = read_request({"url": URL, "body_base64": "/w=="})
    assert (raw.body, raw.headers["content-type"]) == (b"\xff", "application/octet-stream")
    named = read_request({"url": URL, "headers": {"Authorization": {"secret": "a"}}})
    assert named.headers == {"authorization": SecretHeader("a")}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"alow": []}, "must have only"),
        ({"allow": "api"}, "must be a list"),
        ({"allow": ["http://api"]}, "must be a list of hosts and networks"),
        ({"public": "yes"}, "must be true or false"),
        ({"total_timeout": 0}, "must be more than 0"),
        ({"total_timeout": 301}, "at most 300 s"),
        ({"connections_per_host": 0}, "must be from 1 to 1,000"),
        ({"ca_file": 7}, "must be the path of a file"),
        ({"result_headers": [7]}, "must be names"),
        ({"certificates": {"a b": {}}}, "must be a table"),
        ({"certificates": {"a": {"key": "x"}}}, "must have cert and key"),
        ({"secrets": {"a": "host"}}, "must be a list of the hosts"),
        ({"secrets": {"a": ["10.0.0.0/8"]}}, "must name hosts"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_rule(table: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_configuration(table)
    assert says in str(refused.value)


def test_a_secret_goes_only_to_the_hosts_of_its_setting() -> None:
    table = {"secrets": {"a": ["api.example.com", "http://api.internal:8080", "*.b.example"]}}
    hosts = parse_configuration(table).secrets["a"]

    def may(scheme: str, host: str, port: int) -> bool:
        return any(one.has(scheme, host, port) for one in hosts)

    assert may("https", "api.example.com", 443)
    assert may("https", "x.b.example", 443)
    assert may("http", "api.internal", 8080)
    assert not may("http", "api.example.com", 80)
    assert not may("https", "api.example.com", 8443)
    assert not may("https", "evil.example.com", 443)
    assert not may("http", "api.internal", 80)


@pytest.mark.parametrize("name", ["ca_file", "certificates"])
def test_a_worker_does_not_start_with_a_file_that_is_not_a_certificate(
    configured: Configure, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "not.pem"
    file.write_text("nonsense")
    value = str(file) if name == "ca_file" else {"visitor": {"cert": str(file)}}
    with pytest.raises(ConfigError, match="PEM"):
        configured(**{name: value})

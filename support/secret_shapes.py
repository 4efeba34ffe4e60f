"""The shapes in which secrets appear in texts and in values, each around one canary."""

from __future__ import annotations

import json
from typing import Any

# A canary goes where the braces are. It has letters and digits alone, so no format escapes it.
TEXTS: dict[str, str] = {
    "pair": "password={}",
    "pair of a connection string": "host=db user=ada password={} dbname=shop",
    "pair in quotes": "password='{} b' port=1",
    "pair with spaces": "secret_access_key = {}",
    "pair with a colon": "passcode: {}",
    "arrow": "password => '{}'",
    "assignment": "password := {}",
    "short name": "pw={}",
    "pin": "pin: {}",
    "otp": "otp={}",
    "cvv": "cvv={}",
    "ssn": "ssn={}",
    "iban": "iban={}",
    "jwt by name": "jwt={}",
    "csrf": "csrfmiddlewaretoken={}",
    "session": "session={}",
    "dsn": "dsn={}",
    "database_url": "DATABASE_URL={}",
    "connection string": 'connection_string="{}"',
    "hyphens": "refresh-token={}",
    "camel case": "apiKey={}",
    "one word": "clientsecret={}",
    "hash": "passwordHash={}",
    "environment": "PGPASSWORD={} psql -h db",
    "environment of AWS": "AWS_SECRET_ACCESS_KEY={}",
    "option": "run --password={} now",
    "option and a word": "run --password {} now",
    "option with hyphens": "run --api-key {} now",
    "mysql": "mysql -u root -p{} shop",
    "sshpass": "sshpass -p {} ssh host",
    "curl": "curl -u ada:{} https://x.org",
    "key of PostgreSQL": "DETAIL:  Key (password)=({}) already exists.",
    "key of two columns": "DETAIL:  Key (api_key, name)=({}, bob) already exists.",
    "key of an expression": "DETAIL:  Key (lower(token))=({}) already exists.",
    "row": "DETAIL:  Failing row contains (1, {}, null).",
    "row and a state": "DETAIL:  Failing row contains (1, {}). (SQLSTATE 23514)",
    "parameter": "CONTEXT:  unnamed portal parameter $1 = '{}'",
    "parameters": "DETAIL:  parameters: $1 = '7', $2 = '{}'",
    "line of JSON": 'CONTEXT:  JSON data, line 1: {{"a": {}',
    "call": "User(name='ada', password='{}')",
    "tuple": "('password', '{}')",
    "tuple without space": "[('api_key','{}')]",
    "list of pairs": '[["Authorization", "{}"]]',
    "JSON": '{{"password": "{}"}}',
    "JSON with a list": '{{"passwords": ["{}", "b"]}}',
    "JSON with an object": '{{"password": {{"old": "{}"}}}}',
    "JSON in JSON": '{{\\"password\\": \\"{}\\"}}',
    "JSON of a pair": '{{"name": "password", "value": "{}"}}',
    "Python": "{{'api_key': '{}', 'a': 1}}",
    "bytes": "password=b'{}'",
    "bearer": "Authorization: Bearer {}",
    "basic": "authorization=Basic {}, x",
    "scheme of its own": "authorization: Token {}",
    "AWS signature": "Authorization: AWS4-HMAC-SHA256 Credential=k, Signature={}",
    "header": "X-Api-Key: {}",
    "proxy header": "Proxy-Authorization: {}",
    "cookie": "Cookie: theme=dark; session={}",
    "set-cookie": "Set-Cookie: sid={}; Path=/; HttpOnly",
    "tag": "<password>{}</password>",
    "tag with an attribute": '<ns:password type="text">{}</ns:password>',
    "attributes": '<add key="ApiKey" value="{}"/>',
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
    "PEM without end": "-----BEGIN PRIVATE KEY-----\n{}\n",
    "URL": "no route to postgresql://ada:{}@db/shop",
    "URL without a name": "at 'redis://:{}@h/0'",
    "query": "GET https://x.org/a?b=c&token={}&d=e",
    "query of a database": "postgresql://h/db?password={}",
    "encoded": "password%3D{}",
    "JWT": "with eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3In0.{}",
    "AWS key": "with AKIA{:.16}",
    "GitHub": "with ghp_{}{}",
    "GitHub, fine-grained": "with github_pat_{}",
    "Slack": "with xoxb-1234-{}",
    "Stripe": "with sk_live_{}",
    "OpenAI": "with sk-proj-{}",
    "access token": "with tnr_{0}{0}{0:.1}",
    "lease": "with tl_{}",
    "sealed": "with $sealed:{}",
}


def texts(canary: str) -> dict[str, str]:
    """Return each shape as a text around the canary, which must have 24 characters."""
    return {name: text.format(canary, canary) for name, text in TEXTS.items()}


def values(canary: str) -> dict[str, Any]:
    """Return each shape as a value: by a field's name, in pairs and lists, and in texts."""
    named = (
        *("password", "dbPassword", "X-Auth-Token", "tokens", "apitoken", "secretkey", "auth"),
        *("jwt", "sessionid", "privatekey", "signing_key", "ssh_key", "dsn", "database_url"),
        *("connection_string", "pass", "pin", "otp", "cvv", "ssn", "iban", "set-cookie"),
    )
    return {
        **{f"field {name}": {name: canary} for name in named},
        "list": {"passwords": [canary, "b"]},
        "object": {"secret": {"a": [{"b": canary}]}},
        "pair": {"headers": [{"name": "Authorization", "value": canary}]},
        "pair by key": {"env": [{"key": "API_KEY", "value": canary}]},
        "list of pairs": {"headers": [["Authorization", canary], ["Accept", "x"]]},
        "options": {"argv": ["run", "--password", canary, "--verbose"]},
        "sealed": {"$sealed": canary},
        "JSON": {"body": json.dumps({"password": canary})},
        "name": {f"https://ada:{canary}@x.org/": 1},
        **{f"text {name}": {"note": text} for name, text in texts(canary).items()},
    }

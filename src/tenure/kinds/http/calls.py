"""`app.http`: HTTP requests as jobs."""

import base64
from collections.abc import Callable, Mapping
from datetime import timedelta

from tenure._model.ids import Json
from tenure.kinds.call import WorkCall

Headers = Mapping[str, str | Mapping[str, str]]


class HttpCalls:
    """HTTP requests that a worker sends. Get it from `app.http`.

    A request completes with a 2xx response. Its result is the status, some headers, and the body.

    Example::

        from tenure import Tenure

        app = Tenure()

        app.http.post("https://example.com/orders", json={"id": 7}, secret="orders").enqueue()
    """

    def __init__(self, make: Callable[[dict[str, Json]], WorkCall]) -> None:
        self._make = make

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Json = None,
        body: str | bytes | None = None,
        headers: Headers | None = None,
        secret: str | None = None,
        certificate: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> WorkCall:
        """Return a request, ready to enqueue.

        Args:
            method: `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS`.
            url: An http or https URL without a user name and password.
            json: The body, as JSON.
            body: The body, as text or bytes. Cannot be combined with `json`.
            headers: Headers. A value can name a secret, which the worker fills in:
                `{"Authorization": {"secret": "billing", "prefix": "Bearer "}}`.
            secret: The name of the secret that signs the request (default: no signature).
            certificate: The name of a client certificate in the worker's configuration.
            timeout: How long one attempt may take, at most 300 s (default: the worker's
                `total_timeout`, 30 s).

        Returns:
            The request. Call `.enqueue()` on it, or `.using(…)` first.

        Raises:
            InvalidValue: An argument is invalid.
        """
        arguments: dict[str, Json] = {"method": method, "url": url}
        if isinstance(body, bytes):
            arguments["body_base64"] = base64.b64encode(body).decode()
        elif body is not None:
            arguments["body"] = body
        if headers is not None:
            arguments["headers"] = {
                name: dict(value) if isinstance(value, Mapping) else value
                for name, value in headers.items()
            }
        if isinstance(timeout, timedelta):
            timeout = timeout.total_seconds()
        others = {"json": json, "secret": secret, "certificate": certificate, "timeout": timeout}
        arguments |= {name: value for name, value in others.items() if value is not None}
        return self._make(arguments)

    def get(
        self,
        url: str,
        *,
        headers: Headers | None = None,
        secret: str | None = None,
        certificate: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> WorkCall:
        """Return a GET request, ready to enqueue.

        Args:
            url: An http or https URL.
            headers: Headers, as in `request`.
            secret: The name of the secret that signs the request.
            certificate: The name of a client certificate.
            timeout: How long one attempt may take.

        Returns:
            The request.

        Raises:
            InvalidValue: An argument is invalid.
        """
        return self.request(
            "GET", url, headers=headers, secret=secret, certificate=certificate, timeout=timeout
        )

    def post(
        self,
        url: str,
        *,
        json: Json = None,
        body: str | bytes | None = None,
        headers: Headers | None = None,
        secret: str | None = None,
        certificate: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> WorkCall:
        """Return a POST request, ready to enqueue.

        Args:
            url: An http or https URL.
            json: The body, as JSON.
            body: The body, as text or bytes.
            headers: Headers, as in `request`.
            secret: The name of the secret that signs the request.
            certificate: The name of a client certificate.
            timeout: How long one attempt may take.

        Returns:
            The request.

        Raises:
            InvalidValue: An argument is invalid.
        """
        return self.request(
            "POST",
            url,
            json=json,
            body=body,
            headers=headers,
            secret=secret,
            certificate=certificate,
            timeout=timeout,
        )

    def put(
        self,
        url: str,
        *,
        json: Json = None,
        body: str | bytes | None = None,
        headers: Headers | None = None,
        secret: str | None = None,
        certificate: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> WorkCall:
        """Return a PUT request, ready to enqueue.

        Args:
            url: An http or https URL.
            json: The body, as JSON.
            body: The body, as text or bytes.
            headers: Headers, as in `request`.
            secret: The name of the secret that signs the request.
            certificate: The name of a client certificate.
            timeout: How long one attempt may take.

        Returns:
            The request.

        Raises:
            InvalidValue: An argument is invalid.
        """
        return self.request(
            "PUT",
            url,
            json=json,
            body=body,
            headers=headers,
            secret=secret,
            certificate=certificate,
            timeout=timeout,
        )

    def patch(
        self,
        url: str,
        *,
        json: Json = None,
        body: str | bytes | None = None,
        headers: Headers | None = None,
        secret: str | None = None,
        certificate: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> WorkCall:
        """Return a PATCH request, ready to enqueue.

        Args:
            url: An http or https URL.
            json: The body, as JSON.
            body: The body, as text or bytes.
            headers: Headers, as in `request`.
            secret: The name of the secret that signs the request.
            certificate: The name of a client certificate.
            timeout: How long one attempt may take.

        Returns:
            The request.

        Raises:
            InvalidValue: An argument is invalid.
        """
        return self.request(
            "PATCH",
            url,
            json=json,
            body=body,
            headers=headers,
            secret=secret,
            certificate=certificate,
            timeout=timeout,
        )

    def delete(
        self,
        url: str,
        *,
        json: Json = None,
        body: str | bytes | None = None,
        headers: Headers | None = None,
        secret: str | None = None,
        certificate: str | None = None,
        timeout: float | timedelta | None = None,
    ) -> WorkCall:
        """Return a DELETE request, ready to enqueue.

        Args:
            url: An http or https URL.
            json: The body, as JSON.
            body: The body, as text or bytes.
            headers: Headers, as in `request`.
            secret: The name of the secret that signs the request.
            certificate: The name of a client certificate.
            timeout: How long one attempt may take.

        Returns:
            The request.

        Raises:
            InvalidValue: An argument is invalid.
        """
        return self.request(
            "DELETE",
            url,
            json=json,
            body=body,
            headers=headers,
            secret=secret,
            certificate=certificate,
            timeout=timeout,
        )

"""The receiver of the webhooks: a process that fails on purpose, and writes down what it accepted.

`python -m proof.webhooks.receiver PORT BOOK SEED`. It writes a line to the book before it answers,
as a receiver that commits before it answers: what is lost afterwards is only the answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

SECRET = "whsec_cHJvb2Ytb2Ytd2ViaG9va3MtZm9yLXRoZS1mYXVsdC1iZWQ="  # noqa: S105 - of this proof
_LONGEST = 0.3
_LARGEST = 64 * 1024


@dataclass
class Receiver:
    """One receiver. The shares of its failures add up to less than a half."""

    book: TextIO
    rng: random.Random
    verifier: Webhook = field(default_factory=lambda: Webhook(SECRET))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it closes."""
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
        lines = head.split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in
                   (line.partition(":") for line in lines if line)}  # fmt: skip
        body = await reader.readexactly(min(int(headers.get("content-length", "0")), _LARGEST))
        chance = self.rng.random()
        if chance < 0.06:
            return self._status(writer, 500)
        if chance < 0.10:
            return self._status(writer, 503, "Retry-After: 0\r\n")
        if chance < 0.12:
            return self._status(writer, 429)
        if chance < 0.15:
            return False  # Nothing was accepted.
        self._accept(headers, body)
        if chance < 0.18:
            return False  # It was accepted, and the answer is lost.
        if chance < 0.22:
            await asyncio.sleep(self.rng.uniform(0, _LONGEST))
        return self._status(writer, 204)

    def _accept(self, headers: dict[str, str], body: bytes) -> None:
        try:
            self.verifier.verify(body, headers)
            verified = True
        except WebhookVerificationError:
            verified = False
        number = json.loads(body)["number"]
        line = {"number": number, "id": headers.get("webhook-id"), "verified": verified}
        self.book.write(json.dumps(line) + "\n")
        self.book.flush()

    def _status(self, writer: asyncio.StreamWriter, status: int, more: str = "") -> bool:
        writer.write(f"HTTP/1.1 {status} X\r\n{more}Content-Length: 0\r\n\r\n".encode())
        return True


async def main(port: int, book: Path, seed: int) -> None:
    """Serve until killed."""
    with book.open("a") as opened:
        receiver = Receiver(opened, random.Random(seed))  # noqa: S311 - a proof's choices
        server = await asyncio.start_server(receiver.serve, "127.0.0.1", port, backlog=512)
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))

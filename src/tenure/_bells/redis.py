"""Wakeups by Redis publish/subscribe: rung after a commit, heard by workers. No job goes there."""

import importlib.util
import os
import threading
from collections.abc import AsyncIterator, Collection

from tenure._bells.clients import answered, async_client, client
from tenure._bells.ringer import Ringer
from tenure._bells.urls import place
from tenure._store.engine import Bell
from tenure.errors import ConfigError, Unreachable

_SIGN_OF_LIFE = 5.0


class RedisBell:
    """One Redis, or one service of its Sentinels, as the carrier of wakeups."""

    def __init__(self, url: str, *, schema: str) -> None:
        if importlib.util.find_spec("redis") is None:
            raise ConfigError(
                "a Redis is configured, but its client is not installed; "
                'run: pip install "tenure[redis]"'
            )
        self._place = place(url)
        # Channels know no database number; two that share a server by it stay apart.
        self._channel = f"tenure:{self._place.db}:{schema}"
        self._lock = threading.Lock()
        self._ringer: Ringer | None = None

    def ring(self, queues: Collection[str]) -> None:
        """Say that there may be something in these queues; without a wait, without an error."""
        with self._lock:
            if self._ringer is None or self._ringer.pid != os.getpid():
                # The parent's thread is the parent's.
                self._ringer = Ringer(self._place, self._channel)
            self._ringer.ring(queues)

    async def listen(self) -> AsyncIterator[str]:
        """What is rung; an empty text at first and now and then, as a sign of life."""
        async with async_client(self._place) as client, client.pubsub() as pubsub:
            with answered():
                await pubsub.subscribe(self._channel)
            asked = False
            while True:
                with answered():
                    message = await pubsub.get_message(timeout=_SIGN_OF_LIFE)
                    if message is None and not asked:
                        await pubsub.ping()
                if message is None and asked:
                    raise Unreachable(f"Redis gave no sign of life in {_SIGN_OF_LIFE:g} s")
                asked = message is None
                if message is not None:
                    yield message["data"] if message["type"] == "message" else ""

    def check(self) -> None:
        """Unreachable, with the reason, unless Redis takes what is published."""
        with answered(), client(self._place) as connected:
            connected.publish(self._channel, "")

    def close(self) -> None:
        """Publish what was rung, if it can be done at once, and let the thread end."""
        with self._lock:
            ringer, self._ringer = self._ringer, None
        if ringer is not None and ringer.pid == os.getpid():
            ringer.close()


def _is_a_bell(bell: RedisBell) -> Bell:
    """Checked by the type checker."""
    return bell

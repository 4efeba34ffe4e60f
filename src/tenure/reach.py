"""Where an app's jobs go: its database, found when first asked for, and the settings that lead
there. What the app does with it is elsewhere."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenure import _wiring
from tenure._hooks.hooks import Hooks
from tenure._rules.payload import check_key
from tenure._store.engine import Engine
from tenure.program import calling_module, ordered
from tenure.sources import database_url, setting


class Reach:
    """An app's way to its database. Opens and reads nothing until asked."""

    def __init__(
        self,
        url: str | None,
        *,
        schema: str | None,
        pool_size: int | None,
        listen: bool | None,
        redis: str | None,
        program: str | None,
        version: str | int | None,
    ) -> None:
        self._url = url
        self._schema = schema
        self._pool_size = pool_size
        self._listen = listen
        self._redis = redis
        self._program = program
        self._version = version
        ordered(version)  # Refused where it is written.
        self._module = calling_module()
        self._engine: Engine | None = None
        self._finding = threading.RLock()
        self.hooks: Hooks = Hooks(at_end=self._aclose)

    @property
    def engine(self) -> Engine:
        """The database; found when first asked for."""
        with self._finding:  # Threads that ask at once share one: each has pools of its own.
            if self._engine is None:
                self._engine = _wiring.engine(
                    database_url(self._url),
                    schema=self.schema,
                    pool_size=setting("pool_size", self._pool_size),
                    redis=setting("redis_url", self._redis),
                )
            return self._engine

    @contextmanager
    def with_engine(self, engine: Engine) -> Iterator[None]:
        """Have everything go to this engine as long as the block lasts."""
        before, self._engine = self._engine, engine
        try:
            yield
        finally:
            self._engine = before

    @property
    def schema(self) -> str:
        """The schema that everything of Tenure's is in."""
        found: str = setting("schema", self._schema)
        return found

    @property
    def listen(self) -> bool | None:
        """Whether workers hear of new jobs by LISTEN; None: unless a pooler is in between."""
        found: bool | None = setting("listen", self._listen)
        return found

    @property
    def program(self) -> str:
        """The program whose code declares this app's schedules."""
        found: str = setting("program", self._program, built_in=self._module)
        check_key(found, "the program's name")
        return found

    @property
    def version(self) -> Sequence[int]:
        """Which release of the program this is, as numbers that can be compared; () if not said."""
        return ordered(setting("version", self._version))

    def close(self) -> None:
        """Close the connections of the sync world; they are opened again when needed. What
        listeners are yet to hear is told first, for a moment."""
        self.hooks.listeners.close()
        if self._engine is not None:
            self._engine.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop; they are opened again when needed. What
        listeners are yet to hear is told first, for a moment."""
        await self.hooks.listeners.aclose()
        await self._aclose()

    async def _aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()

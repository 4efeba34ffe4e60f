"""What a selector says, as the parameters of the statements that find jobs by it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure._model.selector import Selector
from tenure._rules import selecting
from tenure._store.port import Op, Query
from tenure._store.postgres.base import Base
from tenure._store.postgres.literals import Jsonb


class Sought(Base):
    """What searches and operations share: jobs by a selector."""

    def _sought(self, selector: Selector, now: datetime) -> Op[dict[str, Any]]:
        """The parameters that say what matches, for every source alike."""
        shapes = selecting.shapes(selector.args)
        created, due = (
            selecting.between(selector.created, now),
            selecting.between(selector.due, now),
        )
        ended, attempt = selecting.between(selector.ended, now), selecting.numbers(selector.attempt)
        return {
            "queues": selector.queue or None,
            "tasks": selector.task or None,
            "tags": selector.tag or None,
            "workers": (yield from self._worker_ids(selector.worker)) if selector.worker else None,
            "keys": selector.key or None,
            "errors": selector.error or None,
            "args": None if shapes is None else [Jsonb(shape) for shape in shapes],
            "created_after": created[0],
            "created_before": created[1],
            "due_after": due[0],
            "due_before": due[1],
            "ended_after": ended[0],
            "ended_before": ended[1],
            "attempt_from": attempt[0],
            "attempt_to": attempt[1],
        }

    def _worker_ids(self, named: Sequence[str]) -> Op[list[UUID]]:
        """Workers by their names, or by their ids, also those that are known no more."""
        rows = yield self._query("workers")
        ids = [row["id"] for row in rows if row["name"] in named]
        for text in named:
            try:
                ids.append(UUID(text))
            except ValueError:
                continue
        return ids

    def _trimmed(self, query: Query) -> Query:
        """Without what its statement does not ask: not every job has an end, or an error."""
        wanted = self._statements[query.name].params
        return replace(query, params={name: query.params[name] for name in wanted})

"""Search jobs by selector, the query language in docs/reference/selectors.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from tenure._model.job import JobRow
from tenure._model.selector import Selector
from tenure._rules import idempotency as rules
from tenure._rules import paging, selector_syntax
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.admin._commands import (
    MAX_PAGE_SIZE,
    AdminCommand,
    AsyncTwin,
    CommandGroup,
    check_page_size,
)
from tenure.admin.installation import redactor_of
from tenure.errors import InvalidValue

Ids: TypeAlias = Sequence[int | str]
# How many rows one page searches, by `widen` value.
WINDOWS: tuple[int, ...] = (50_000, 250_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class JobSearch:
    """A page of matching jobs, newest first. It may be shorter than requested.

    Attributes:
        jobs: The jobs.
        next: Pass it as `after` to get the next page. None on the last page.
        searched: How many rows were searched.
        bounded: Whether the search stopped at `window` with rows remaining.
        window: The maximum number of rows to search.
        took: How long the query took.
        now: The current time on the database's clock.
    """

    jobs: Sequence[JobRow]
    next: str | None
    searched: int
    bounded: bool
    window: int
    took: timedelta
    now: datetime

    @property
    def summary(self) -> str:
        """The number of rows searched and the time taken, as a sentence."""
        newest = "the newest " if self.bounded else ""
        took = self.took / timedelta(milliseconds=1)
        return f"searched {newest}{self.searched:,} in {took:,.0f} ms"


class SearchCommands(CommandGroup):
    """The command that searches jobs."""

    @AdminCommand
    def search(
        self,
        selector: Selector | str = "",
        *,
        count: int = 50,
        after: str | None = None,
        widen: int = 0,
        patterns: Sequence[str] | None = None,
        largest: int | None = None,
    ) -> Op[JobSearch]:
        """Search jobs in every state by selector, newest first.

        One call searches a limited number of rows, so a page may be shorter than `count`.

        Args:
            selector: A `Selector`, or a selector string.
            count: The page size, 1 to 1,000 (default: 50).
            after: The previous page's `next`.
            widen: Search 50,000 (0), 250,000 (1) or 1,000,000 (2) rows (default: 0).
            patterns: Only queues that match one of these, such as `"mail.*"` (default: all queues).
            largest: Omit payload fields larger than this many bytes of JSON. 0 omits all of them
                (default: omit none).

        Returns:
            A page of jobs, and how far the search got.

        Raises:
            InvalidValue: The selector is invalid, or names a hidden field.
        """
        query = checked(selector)
        check_page_size(count)
        if widen not in range(len(WINDOWS)):
            raise InvalidValue(f"widen must be from 0 to {len(WINDOWS) - 1}, got {widen}")
        places = None if after is None else paging.search_places(after)
        yield from check_hidden(self._store, query)
        window = WINDOWS[widen]
        page = yield from self._store.job_queries.search(
            query,
            count=count,
            window=window,
            places=places,
            granted=patterns,
            largest=largest,
        )
        return JobSearch(
            jobs=page.jobs,
            next=paging.search_token(page.next) if page.next else None,
            searched=page.searched,
            bounded=page.bounded,
            window=window,
            took=page.took,
            now=page.now,
        )

    asearch: Final = AsyncTwin(search)

    @AdminCommand
    def get_many(self, ids: Ids, *, largest: int | None = None) -> Op[Sequence[JobRow]]:
        """Get several jobs by id.

        Args:
            ids: Up to 1,000 job ids, as numbers or strings.
            largest: Omit payload fields larger than this many bytes of JSON. 0 omits all of them
                (default: omit none).

        Returns:
            The jobs that exist, in no particular order.

        Raises:
            InvalidValue: There are too many ids.
        """
        numbers = rules.job_ids(ids)
        if len(numbers) > MAX_PAGE_SIZE:
            raise InvalidValue(
                f"ids must be at most {MAX_PAGE_SIZE:,}, got {len(numbers):,}; ask in parts"
            )
        return self._store.jobs.get_many(numbers, largest=largest)

    aget_many: Final = AsyncTwin(get_many)


def checked(selector: Selector | str) -> Selector:
    """Return the parsed selector, or raise InvalidValue."""
    return selector_syntax.parse(
        selector if isinstance(selector, str) else selector_syntax.text(selector)
    )


def check_hidden(store: Store, selector: Selector) -> Op[None]:
    """Refuse to search redacted fields, because a match would confirm a guessed value."""
    if not selector.args:
        return
    hidden = redactor_of((yield from store.settings.changed()))
    for one in selector.args:
        if any(hidden.hides(*one.path[: end + 1]) for end in range(len(one.path))):
            raise InvalidValue(
                "the selector must not name a hidden field in args; remove it, or see the setting "
                "redact: tenure setting list"
            )

"""What an operator can find: jobs by a selector, the language of docs/reference/selectors.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tenure._model.job import JobRow
from tenure._model.selector import Selector
from tenure._rules import paging, selector_syntax
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, check_page_size
from tenure.admin.installation import redactor_of
from tenure.errors import InvalidValue

# How many rows are searched for a page: by how often a search is widened.
WINDOWS: tuple[int, ...] = (50_000, 250_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class JobSearch:
    """A page of the jobs that match, newest first; it may come short. `next` is None at the end
    alone. `searched` counts the rows that were looked at, at most `window`;
    `bounded`: there are more that were not, which the next page searches, or this one when widened.
    `took` is how long the database needed, `now` the time on its clock."""

    jobs: Sequence[JobRow]
    next: str | None
    searched: int
    bounded: bool
    window: int
    took: timedelta
    now: datetime

    @property
    def summary(self) -> str:
        """What was searched, in words."""
        newest = "the newest " if self.bounded else ""
        took = self.took / timedelta(milliseconds=1)
        return f"searched {newest}{self.searched:,} in {took:,.0f} ms"


class SearchCommands(CommandGroup):
    """The verb that searches jobs."""

    @AdminCommand
    def search(
        self,
        selector: Selector | str = "",
        *,
        count: int = 50,
        after: str | None = None,
        widen: int = 0,
    ) -> Op[JobSearch]:
        """The jobs that a selector means, in whatever state, newest first; `after` is the last
        page's `next`. What is searched per page is bounded; `widen`, 0 to 2, makes it more."""
        meant = checked(selector)
        check_page_size(count)
        if widen not in range(len(WINDOWS)):
            raise InvalidValue(f"a search cannot be widened {widen} times; 0 to {len(WINDOWS) - 1}")
        places = None if after is None else paging.search_places(after)
        yield from check_hidden(self._store, meant)
        window = WINDOWS[widen]
        found = yield from self._store.job_queries.search(
            meant, count=count, window=window, places=places
        )
        return JobSearch(
            jobs=found.jobs,
            next=paging.search_token(found.next) if found.next else None,
            searched=found.searched,
            bounded=found.bounded,
            window=window,
            took=found.took,
            now=found.now,
        )

    asearch: Final = AsyncTwin(search)


def checked(selector: Selector | str) -> Selector:
    """The selector, if it is one."""
    return selector_syntax.parse(
        selector if isinstance(selector, str) else selector_syntax.text(selector)
    )


def check_hidden(store: Store, selector: Selector) -> Op[None]:
    """Refuse to search for what nobody is shown: a guess that is confirmed tells it too."""
    if not selector.args:
        return
    hidden = redactor_of((yield from store.settings.changed()))
    for one in selector.args:
        if any(hidden.hides(*one.path[: end + 1]) for end in range(len(one.path))):
            raise InvalidValue(
                "one args. of the selector names a field that is hidden, and is not searched for; "
                "leave it away, or see: tenure setting list"
            )

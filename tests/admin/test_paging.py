"""A place in a list survives its way through people's hands, and no other text is one."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.ids import JobId
from tenure._model.results import PageCursor
from tenure._rules import paging
from tenure.errors import InvalidValue

PLACES = st.builds(
    PageCursor, st.integers(1, 2**63 - 1).map(JobId), st.none() | st.dates(date(1970, 1, 1))
)


@given(PLACES)
def test_a_place_comes_back_as_it_was(place: PageCursor) -> None:
    assert paging.place(paging.token(place)) == place


@pytest.mark.parametrize("text", ["", "x", "-1", "1-", "1-20269901", "9" * 19, "1 ", "١"])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="must be the `next` of the last page"):
        paging.place(text)

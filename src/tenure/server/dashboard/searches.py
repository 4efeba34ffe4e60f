"""Commands for search pages, with their own connections and a concurrency limit per visitor."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from tenure.admin import Admin
from tenure.server.dashboard.session import Visitor
from tenure.server.dependencies import search_turn


async def _searching(request: Request, visitor: Visitor) -> AsyncIterator[Admin]:
    async with search_turn(request, visitor) as admin:
        yield admin


PageSearchDep = Annotated[Admin, Depends(_searching)]

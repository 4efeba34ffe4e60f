"""The PostgreSQL store as one thing: the parts that its files hold, behind the port."""

from collections.abc import Sequence

from tenure._store.port import Op, Store
from tenure._store.postgres.access import Access
from tenure._store.postgres.depths import Depths
from tenure._store.postgres.groups import FailedGroups
from tenure._store.postgres.leases import Leases
from tenure._store.postgres.lists import Lists
from tenure._store.postgres.operations import Operations
from tenure._store.postgres.rollups import Rollups
from tenure._store.postgres.schedules import Schedules
from tenure._store.postgres.schema import Schema
from tenure._store.postgres.searching import Searching
from tenure._store.postgres.sights import Sights
from tenure._store.postgres.vitals import Vitals


class PostgresStore(
    Leases,
    Lists,
    Searching,
    Operations,
    Depths,
    FailedGroups,
    Rollups,
    Vitals,
    Schedules,
    Access,
    Sights,
    Schema,
):
    """Tenure's store on PostgreSQL 15 and later."""

    def install(self) -> Op[Sequence[str]]:
        """Bring the schema up to this release and make the partitions it needs."""
        applied = yield from self.migrate()
        yield from self.maintain()
        return applied


def _is_a_store(store: PostgresStore) -> Store:
    """Checked by the type checker: the parts together are the port."""
    return store

"""The PostgreSQL store as one thing: the parts that its files hold, behind the port."""

from collections.abc import Sequence

from tenure._store.port import Store
from tenure._store.postgres.inspection import InspectionQueries
from tenure._store.postgres.job_queries import ListQueries, SearchQueries
from tenure._store.postgres.leases import LeaseQueries
from tenure._store.postgres.operations import OperationQueries
from tenure._store.postgres.overview import LateWorkQueries
from tenure._store.postgres.schedules import ScheduleQueries
from tenure._store.postgres.schema import SchemaQueries
from tenure._store.postgres.stats import DepthQueries, FailedGroupQueries, RollupQueries
from tenure._store.postgres.tokens import TokenQueries
from tenure._store.steps import Op


class PostgresStore(
    LeaseQueries,
    ListQueries,
    SearchQueries,
    OperationQueries,
    DepthQueries,
    FailedGroupQueries,
    RollupQueries,
    LateWorkQueries,
    ScheduleQueries,
    TokenQueries,
    InspectionQueries,
    SchemaQueries,
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

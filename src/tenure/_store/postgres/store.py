"""The PostgreSQL store: its parts, each in the file with its name."""

from collections.abc import Sequence

from tenure._store.port import Store
from tenure._store.postgres.audit import AuditQueries
from tenure._store.postgres.erasures import ErasureQueries
from tenure._store.postgres.inspection import InspectionQueries
from tenure._store.postgres.job_commands import JobCommandQueries
from tenure._store.postgres.job_edits import JobEditQueries
from tenure._store.postgres.job_queries import JobSearchQueries
from tenure._store.postgres.jobs import JobQueries
from tenure._store.postgres.leases import LeaseQueries
from tenure._store.postgres.maintenance import MaintenanceQueries
from tenure._store.postgres.notices import NoticeQueries
from tenure._store.postgres.operations import OperationQueries
from tenure._store.postgres.overview import OverviewQueries
from tenure._store.postgres.queues import QueueQueries
from tenure._store.postgres.schedules import ScheduleQueries
from tenure._store.postgres.schema import SchemaQueries
from tenure._store.postgres.settings import SettingQueries
from tenure._store.postgres.settlement import SettlementQueries
from tenure._store.postgres.sign_ins import SignInQueries
from tenure._store.postgres.statements import DEFAULT_SCHEMA, Clock, Statements
from tenure._store.postgres.stats import StatsQueries
from tenure._store.postgres.ticks import TickQueries
from tenure._store.postgres.tokens import TokenQueries
from tenure._store.postgres.workers import WorkerQueries
from tenure._store.steps import Op


class PostgresStore(Store):
    """Tenure's store on PostgreSQL 15 and later. Tests pass a `clock`."""

    # These can do more than the port requires.
    jobs: JobQueries
    ticks: TickQueries
    stats: StatsQueries
    erasures: ErasureQueries
    inspection: InspectionQueries
    maintenance: MaintenanceQueries
    schema: SchemaQueries

    def __init__(self, schema: str = DEFAULT_SCHEMA, *, clock: Clock | None = None) -> None:
        shared = Statements(schema, clock=clock)
        jobs = JobQueries(shared)
        job_queries = JobSearchQueries(shared)
        job_commands = JobCommandQueries(shared)
        settlement = SettlementQueries(shared, jobs)
        queues = QueueQueries(shared)
        settings = SettingQueries(shared)
        workers = WorkerQueries(shared)
        audit = AuditQueries(shared)
        ticks = TickQueries(shared)
        overview = OverviewQueries(shared)
        erasures = ErasureQueries(shared, search=job_queries)
        maintenance = MaintenanceQueries(shared, settings)
        super().__init__(
            jobs=jobs,
            job_queries=job_queries,
            job_commands=job_commands,
            job_edits=JobEditQueries(shared, jobs, job_commands, settings),
            leases=LeaseQueries(shared, settlement),
            settlement=settlement,
            queues=queues,
            settings=settings,
            workers=workers,
            audit=audit,
            schedules=ScheduleQueries(shared, jobs, ticks),
            ticks=ticks,
            operations=OperationQueries(
                shared, commands=job_commands, search=job_queries, ticks=ticks, erasures=erasures
            ),
            erasures=erasures,
            notices=NoticeQueries(shared),
            tokens=TokenQueries(shared),
            sign_ins=SignInQueries(shared),
            stats=StatsQueries(shared, jobs=jobs, queues=queues, workers=workers, audit=audit),
            overview=overview,
            inspection=InspectionQueries(shared, overview, settings, maintenance),
            maintenance=maintenance,
            schema=SchemaQueries(shared),
        )

    def install(self) -> Op[Sequence[str]]:
        """Migrate the schema to this release and create the partitions it needs."""
        applied = yield from self.schema.migrate()
        yield from self.maintenance.maintain()
        return applied

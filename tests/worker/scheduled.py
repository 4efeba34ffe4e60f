"""A schedule of every second, for real workers in processes of their own."""

from tenure import Job, Tenure

app = Tenure(version="1.0")
TARGET = f"{__name__}:app"


@app.schedule(every=1, name="seconds", missed="all")
@app.task(name="seconds")
def seconds(job: Job) -> str:
    return f"{job.tick_at}"

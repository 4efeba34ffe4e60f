"""The same program's next release: one schedule changed, one added, one gone."""

from tenure import Tenure

app = Tenure(program="proof-deploy", version=2)


@app.schedule(every=1, name="kept", missed="all")
@app.schedule(every=1.5, name="changed", missed="all")
@app.schedule(every=1, name="added", missed="all")
@app.task(name="noop", queue="piled")
def noop() -> None:
    """No worker runs it."""

"""A program as it was first released."""

from tenure import Tenure

app = Tenure(program="proof-deploy", version=1)


@app.schedule(every=1, name="kept", missed="all")
@app.schedule(every=1, name="changed", missed="all")
@app.schedule(every=1, name="removed", missed="all")
@app.task(name="noop", queue="piled")
def noop() -> None:
    """No worker runs it."""

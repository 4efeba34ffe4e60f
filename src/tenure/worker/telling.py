"""A line of the log for each job that ends well, where somebody sits before the worker and writes
code. What fails is said by who settles it, everywhere."""

from tenure._model.job import State
from tenure._model.lease import Settled, Settling
from tenure._model.outcome import Ended
from tenure._services.base import about, log
from tenure._services.holdings import Held


def completed(held: Held) -> None:
    """A job was completed by its handler's own transaction, or by reaching its target."""
    _tell(held, State.COMPLETED)


def settled(held: Held, ended: Ended, answer: Settled) -> None:
    """A running period has ended in the store."""
    state = answer.state or ended.settlement.state
    if answer.answer is not Settling.REFUSED and state in (State.COMPLETED, State.CANCELLED):
        _tell(held, state)


def _tell(held: Held, state: State) -> None:
    took = f", in {held.took.total_seconds():.3f} s" if held.took is not None else ""
    log.info("job %s (%s): %s%s", held.job.id, held.job.task, state, took, extra=about(held.job))

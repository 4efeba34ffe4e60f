"""One description per operator command: its name, summary, outcomes and required scope.

The command line, the HTTP API, the dashboard and the audit read these. None of them words a command
or its outcome again. Only the standard library: `tenure --help` reads the summaries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What a command did to one target: a status for programs, a sentence for people."""

    status: str
    sentence: str
    is_refusal: bool = False
    holder: int | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """An operator command. Sentences may use `{subject}`, and what `outcome` is given by name."""

    target: str  # what it acts on: "job"
    name: str  # the command, the end of the route, the value of the button: "retry"
    summary: str  # the help, and the description in OpenAPI
    done: Mapping[str, str]  # a sentence for each status that says that it was done
    refusals: Mapping[str, str] = field(default_factory=dict)  # and for each that says it was not
    label: str = ""  # the button; the name by default
    scope: str = "operate"  # what an access token needs
    audit: str = ""  # in the audit; the target and the name by default

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name.capitalize())
        object.__setattr__(self, "audit", self.audit or f"{self.target}.{self.name}")

    @property
    def status(self) -> str:
        """The status of what is done, where there is one alone."""
        [status] = self.done
        return status

    def outcome(self, target: object, result: object = True, **facts: Any) -> Outcome:
        """The outcome of what `tenure.admin` returned for one target: a status, or whether it was
        done, or a result that has a status and the job that holds the key."""
        holder: int | None = getattr(result, "holder", None)
        status = str(getattr(result, "answer", result))
        if isinstance(result, bool):
            status = next(iter(self.done if result else self.refusals))
        is_refusal = status in self.refusals
        text = (self.refusals if is_refusal else self.done)[status]
        subject = "every queue" if target == "*" else f"{self.target} {target}"
        sentence = text.format(subject=subject, holder=holder, **facts)
        return Outcome(status, sentence, is_refusal, holder)


def _job(name: str, summary: str, done: Mapping[str, str], refusals: Mapping[str, str]) -> Action:
    return Action("job", name, summary, done, refusals, audit=name)


_NOT_FAILED = "{subject} is not a dead letter"
_NOT_QUEUED = "{subject} is not queued"

RETRY: Action = _job(
    "retry",
    "Put dead letters back in their queues with fresh attempts.",
    {"retried": "{subject} is back in its queue"},
    {
        "not_failed": _NOT_FAILED,
        "key_held": "{subject} cannot be retried: job {holder} holds its key",
    },
)
CANCEL: Action = _job(
    "cancel",
    "Cancel queued jobs at once; ask the workers of running ones to stop.",
    {
        "cancelled": "{subject} is cancelled",
        "requested": "the worker of {subject} is asked to stop it",
    },
    {"not_live": "{subject} is not queued or running"},
)
REVOKE: Action = _job(
    "revoke",
    "Take running jobs from their workers at once and cancel them.",
    {"revoked": "{subject} was taken from its worker and is cancelled"},
    {"not_running": "{subject} is not running"},
)
HOLD: Action = _job(
    "hold",
    "Keep queued jobs from being claimed until you resume them.",
    {"held": "{subject} is held"},
    {"not_queued": _NOT_QUEUED},
)
RESUME: Action = _job(
    "resume",
    "Release held jobs to their old place in the queue.",
    {"resumed": "{subject} is no longer held"},
    {"not_held": "{subject} is not held"},
)
DISCARD: Action = _job(
    "discard",
    "Delete dead letters for good.",
    {"discarded": "{subject} is discarded"},
    {"not_failed": _NOT_FAILED},
)
MOVE: Action = _job(
    "move",
    "Give queued jobs another queue, priority or time.",
    {"moved": "{subject} was moved"},
    {"not_queued": _NOT_QUEUED},
)
DELETE: Action = _job(
    "delete",
    "Delete ended jobs for good, with their items and keys.",
    {"deleted": "{subject} is deleted"},
    {
        "live": "{subject} has not ended: cancel it first",
        "not_found": "there is no {subject}",
    },
)
JOB_ACTIONS: Mapping[str, Action] = {
    action.name: action for action in (RETRY, CANCEL, REVOKE, HOLD, RESUME, DISCARD, MOVE, DELETE)
}

PAUSE_QUEUE: Action = Action(
    "queue",
    "pause",
    "Pause a queue (*: all queues) until a time or until resumed; running jobs continue.",
    {"paused": "{subject} is paused"},
)
RESUME_QUEUE: Action = Action(
    "queue", "resume", "Resume a paused queue.", {"resumed": "{subject} is resumed"}
)
LIMIT_QUEUE: Action = Action(
    "queue",
    "limit",
    "Limit how many jobs of a queue run at once, over all workers.",
    {
        "limited": "{subject} runs at most {limit} at once",
        "unlimited": "{subject} has no limit",
    },
)
CONFIGURE_QUEUE: Action = Action(
    "queue",
    "configure",
    "Give a queue its own lease and attempts; settings apply otherwise.",
    {"configured": "{subject} has: lease {lease}, max attempts {max_attempts}"},
)

DRAIN_WORKER: Action = Action(
    "worker",
    "drain",
    "Ask a worker to take no new jobs and to stop.",
    {"asked": "{subject} is asked to stop; it learns of it within seconds"},
    {"not_found": "there is no {subject}"},
)

SET_SETTING: Action = Action(
    "setting",
    "set",
    "Change a setting for the whole installation at run time.",
    {"set": "{subject} is {value}"},
    scope="admin",
)
RESET_SETTING: Action = Action(
    "setting",
    "reset",
    "Reset a setting to its default.",
    {"reset": "{subject} has its default again"},
    scope="admin",
)

CREATE_TOKEN: Action = Action(
    "token",
    "create",
    "Create an access token; its secret is shown only once.",
    {"created": "{subject} is created"},
    scope="admin",
)
REVOKE_TOKEN: Action = Action(
    "token",
    "revoke",
    "Revoke access tokens for good.",
    {"revoked": "{subject} is revoked"},
    {"not_found": "there is no {subject}, or it was revoked before"},
    scope="admin",
)

_PROGRESS = "{subject} is {state}, {done} of {total} done"
PAUSE_OPERATION: Action = Action(
    "operation", "pause", "Pause an operation; what is done stays done.", {"paused": _PROGRESS}
)
RESUME_OPERATION: Action = Action(
    "operation", "resume", "Resume a paused operation where it was.", {"running": _PROGRESS}
)
ABORT_OPERATION: Action = Action(
    "operation",
    "abort",
    "End an operation now; the rest is left as it was.",
    {"aborted": _PROGRESS},
)
OPERATION_ACTIONS: Mapping[str, Action] = {
    action.name: action for action in (PAUSE_OPERATION, RESUME_OPERATION, ABORT_OPERATION)
}

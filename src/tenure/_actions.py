"""One description per operator command: its name, summary, outcomes and required scope.

The command line, the HTTP API, the dashboard and the audit log share these texts. This file imports
only the standard library, because `tenure --help` reads the summaries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """The outcome for one target: a status for programs and a sentence for people."""

    status: str
    sentence: str
    is_refusal: bool = False
    holder: int | None = None
    job: int | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """An operator command. Its sentences can use `{subject}` and the facts passed to `outcome`."""

    target: str  # what it acts on, such as "job"
    name: str  # the command, the route's last segment and the button's value, such as "retry"
    summary: str  # the help text and the OpenAPI description
    done: Mapping[str, str]  # a sentence for each success status
    refusals: Mapping[str, str] = field(default_factory=dict)  # the same for each refusal
    label: str = ""  # the button (default: the name)
    scope: str = "operate"  # the scope an access token needs
    audit: str = ""  # in the audit log (default: target.name)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name.capitalize())
        object.__setattr__(self, "audit", self.audit or f"{self.target}.{self.name}")

    @property
    def status(self) -> str:
        """The success status, if there is only one."""
        [status] = self.done
        return status

    def outcome(self, target: object, result: object = True, **facts: Any) -> Outcome:
        """Return the outcome for one result from `tenure.admin`.

        A result is a status, a bool, or an object with a status, the id of the job that holds the
        key, and the id of a new job.
        """
        holder: int | None = getattr(result, "holder", None)
        job: int | None = getattr(result, "job", None)
        status = str(getattr(result, "answer", result))
        if isinstance(result, bool):
            status = next(iter(self.done if result else self.refusals))
        is_refusal = status in self.refusals
        text = (self.refusals if is_refusal else self.done)[status]
        subject = "every queue" if target == "*" else f"{self.target} {target}"
        sentence = text.format(**{"subject": subject, "holder": holder, "job": job, **facts})
        return Outcome(status, sentence, is_refusal, holder, job)


def _job(name: str, summary: str, done: Mapping[str, str], refusals: Mapping[str, str]) -> Action:
    return Action("job", name, summary, done, refusals, audit=name)


_NOT_FAILED = "{subject} is not a dead letter"
_NOT_QUEUED = "{subject} is not queued"
_NOT_FOUND = "{subject} does not exist"
_SEALED = "{subject} has sealed arguments: only a program with the codec can replace them"

RETRY: Action = _job(
    "retry",
    "Put dead letters back in their queues with fresh attempts.",
    {"retried": "{subject} is back in its queue"},
    {
        "not_failed": _NOT_FAILED,
        "key_held": "{subject} cannot be retried: job {holder} holds its key",
        "sealed": _SEALED,
    },
)
EDIT: Action = _job(
    "edit",
    "Change queued jobs and dead letters.",
    {"edited": "{subject} is edited"},
    {
        "running": "{subject} is running: edit it once this attempt has ended, or cancel it",
        "not_queued": "{subject} is a dead letter, which has no start time: retry it first",
        "ended": "{subject} has ended: run it again with other arguments instead",
        "sealed": _SEALED,
        "not_found": _NOT_FOUND,
    },
)
RERUN: Action = Action(
    "job",
    "rerun",
    "Run ended jobs again, as new jobs.",
    {"enqueued": "{subject} runs again as job {job}"},
    {
        "key_held": "{subject} cannot pass on its key: job {holder} holds it",
        "live": "{subject} has not ended: only ended jobs can be run again",
        "sealed": _SEALED,
        "not_found": _NOT_FOUND,
    },
    label="Run again",
    audit="rerun",
)
CANCEL: Action = _job(
    "cancel",
    "Cancel queued jobs, and request that running jobs stop.",
    {
        "cancelled": "{subject} is cancelled",
        "requested": "{subject} is running; its worker was asked to stop it",
    },
    {"not_live": "{subject} is not queued or running"},
)
REVOKE: Action = _job(
    "revoke",
    "Force-stop running jobs: take them from their workers now.",
    {"revoked": "{subject} was taken from its worker and is cancelled"},
    {"not_running": "{subject} is not running"},
)
HOLD: Action = _job(
    "hold",
    "Hold queued jobs until you resume them.",
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
    "Change the queue, priority or time of queued jobs.",
    {"moved": "{subject} was moved"},
    {"not_queued": _NOT_QUEUED},
)
DELETE: Action = _job(
    "delete",
    "Delete ended jobs for good, with their items and keys.",
    {"deleted": "{subject} is deleted"},
    {
        "live": "{subject} has not ended: cancel it first",
        "not_found": _NOT_FOUND,
    },
)
JOB_ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (RETRY, CANCEL, REVOKE, HOLD, RESUME, DISCARD, MOVE, EDIT, RERUN, DELETE)
}

FREE_KEY: Action = Action(
    "key",
    "free",
    "Free a key whose job has ended.",
    {"freed": "{subject} of task {task} is free"},
    {
        "live": "{subject} of task {task} is held by job {holder}, which has not ended: "
        "cancel it first",
        "not_found": "{subject} of task {task} is not held",
    },
)

PAUSE_QUEUE: Action = Action(
    "queue",
    "pause",
    "Pause a queue. Running jobs continue.",
    {"paused": "{subject} is paused"},
)
RESUME_QUEUE: Action = Action(
    "queue", "resume", "Resume a paused queue.", {"resumed": "{subject} is resumed"}
)
LIMIT_QUEUE: Action = Action(
    "queue",
    "limit",
    "Limit how many jobs of a queue run at once.",
    {
        "limited": "{subject} runs at most {limit} jobs at once",
        "unlimited": "{subject} has no limit",
    },
)
CONFIGURE_QUEUE: Action = Action(
    "queue",
    "configure",
    "Set the lease and attempts of a queue.",
    {"configured": "{subject} has lease {lease}, max attempts {max_attempts}"},
)
QUOTA_QUEUE: Action = Action(
    "queue",
    "quota",
    "Replace the quotas of a queue.",
    {"changed": "{subject} has {quotas}"},
    scope="admin",
)

DRAIN_WORKER: Action = Action(
    "worker",
    "drain",
    "Drain a worker: it takes no new jobs and stops.",
    {"asked": "{subject} will drain within seconds"},
    {"not_found": "{subject} does not exist"},
)

SET_SETTING: Action = Action(
    "setting",
    "set",
    "Change a setting for the whole installation.",
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
    "Create an access token, and print its secret once.",
    {"created": "{subject} is created"},
    scope="admin",
)
QUOTA_TOKEN: Action = Action(
    "token",
    "quota",
    "Replace the quotas of an access token.",
    {"changed": "{subject} has new quotas"},
    {"not_found": "{subject} does not exist"},
    scope="admin",
)
REVOKE_TOKEN: Action = Action(
    "token",
    "revoke",
    "Revoke access tokens for good.",
    {"revoked": "{subject} is revoked"},
    {"not_found": "{subject} does not exist, or was already revoked"},
    scope="admin",
)

REVOKE_SESSION: Action = Action(
    "session",
    "revoke",
    "End dashboard sessions. The browser must sign in again.",
    {"revoked": "{subject} is ended"},
    {"not_found": "{subject} does not exist, or is already over"},
    scope="admin",
)

ADD_NOTICE: Action = Action(
    "notice",
    "add",
    "Add a rule that notifies a receiver of events.",
    {"added": "{subject} is added"},
    scope="admin",
)
TEST_NOTICE: Action = Action(
    "notice",
    "test",
    "Send a test notice to the receiver of a rule.",
    {"enqueued": "{subject} sends a test as job {job}"},
    {"not_found": "{subject} does not exist"},
    scope="admin",
)
REMOVE_NOTICE: Action = Action(
    "notice",
    "remove",
    "Remove rules for notices.",
    {"removed": "{subject} is removed"},
    {"not_found": "{subject} does not exist"},
    scope="admin",
)

_PROGRESS = "{subject} is {state}, {done} of {total} done"
PAUSE_OPERATION: Action = Action(
    "operation", "pause", "Pause an operation. Finished items stay done.", {"paused": _PROGRESS}
)
RESUME_OPERATION: Action = Action(
    "operation", "resume", "Resume a paused operation where it stopped.", {"running": _PROGRESS}
)
ABORT_OPERATION: Action = Action(
    "operation",
    "abort",
    "Stop an operation. The rest stays unchanged.",
    {"aborted": _PROGRESS},
)
ERASE: Action = Action(
    "operation",
    "erase",
    "Erase what is stored about a person, in every table.",
    {"pending": _PROGRESS},
    scope="admin",
    audit="operation.start",
)
OPERATION_ACTIONS: Mapping[str, Action] = {
    action.name: action for action in (PAUSE_OPERATION, RESUME_OPERATION, ABORT_OPERATION)
}

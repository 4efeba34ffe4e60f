"""Keys: one living job per (task, key), also within one call."""

from collections.abc import Sequence

from tenure._model.job import NewJob


def first_of_each_key(jobs: Sequence[NewJob]) -> tuple[list[int], list[int]]:
    """Which jobs to send, and for each job asked which of those answers for it.

    A key that comes twice in one call is sent once: the second is a no-op that returns the
    first, as it would be in a call of its own.
    """
    sent: list[int] = []
    answers: list[int] = []
    places: dict[tuple[str, str], int] = {}
    for index, job in enumerate(jobs):
        place = None if job.key is None else places.get((job.task, job.key))
        if place is None:
            place = len(sent)
            sent.append(index)
            if job.key is not None:
                places[job.task, job.key] = place
        answers.append(place)
    return sent, answers

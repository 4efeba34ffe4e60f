"""Keys within one call: a key that comes twice is sent once, and both get its answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenure._model.job import NewJob
from tenure._rules.payload import first_of_each_key

jobs_of = st.lists(
    st.builds(
        NewJob, task=st.sampled_from(["t", "u"]), key=st.none() | st.sampled_from(["1", "2", "3"])
    ),
    max_size=20,
)


@given(jobs_of)
def test_every_job_is_answered_for_by_one_of_its_own_key(jobs: list[NewJob]) -> None:
    """Shows R17."""
    sent, answers = first_of_each_key(jobs)
    assert len(answers) == len(jobs)
    for job, place in zip(jobs, answers, strict=True):
        first = jobs[sent[place]]
        assert (first.task, first.key) == (job.task, job.key)


@given(jobs_of)
def test_a_key_is_sent_once_and_its_first_job_is_the_one(jobs: list[NewJob]) -> None:
    """Shows R17."""
    sent, _ = first_of_each_key(jobs)
    keyed = [(jobs[i].task, jobs[i].key) for i in sent if jobs[i].key is not None]
    assert len(keyed) == len(set(keyed))
    for index in sent:
        name = jobs[index].task, jobs[index].key
        if name[1] is not None:
            assert index == [(job.task, job.key) for job in jobs].index(name)


@given(jobs_of)
def test_jobs_without_a_key_are_all_sent_and_the_order_is_kept(jobs: list[NewJob]) -> None:
    sent, answers = first_of_each_key(jobs)
    assert sent == sorted(sent)
    keyless = [index for index, job in enumerate(jobs) if job.key is None]
    assert [sent[answers[index]] for index in keyless] == keyless


def test_one_key_of_two_tasks_is_two_keys() -> None:
    jobs = [NewJob("t", key="1"), NewJob("u", key="1"), NewJob("t", key="1")]
    assert first_of_each_key(jobs) == ([0, 1], [0, 1, 0])

"""The pages in Django's admin: who sees what, and that nothing can be changed."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from support.secret_shapes import texts, values
from tenure.contrib.django import app
from tenure.contrib.django.models import Job
from tests.contrib.django.acts import work
from tests.contrib.django.sample import note, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

LIST = "/admin/tenure/job/"


@pytest.fixture
def visit(project: Any) -> Callable[..., Client]:
    """A browser in which a user with these permissions is signed in."""

    def signed_in(*permissions: str) -> Client:
        user = User.objects.create_user("ana", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client = Client()
        client.force_login(user)
        return client

    return signed_in


def text(client: Client, path: str, **query: str) -> str:
    """A page's text."""
    answer = client.get(path, query)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def test_a_list_is_by_state_queue_and_task(visit: Callable[..., Client]) -> None:
    """Shows R12."""
    one = note.enqueue(text="Ada").id
    two = note.using(queue="mail").enqueue(text="Grace").id
    client = visit("view_job")
    assert all(f"{LIST}{job}/" in text(client, LIST) for job in (one, two))
    assert f"{LIST}{one}/" not in text(client, LIST, queue="mail")
    assert f"{LIST}{two}/" in text(client, LIST, queue="mail", task="sample.note")
    assert f"{LIST}{two}/" not in text(client, LIST, task="another")
    assert f"{LIST}{two}/" not in text(client, LIST, state="completed")


def test_a_long_list_is_read_page_by_page(visit: Callable[..., Client]) -> None:
    ids = [handle.id for handle in app.enqueue_many(note.bind() for _ in range(60))]
    client = visit("view_job")
    first = text(client, LIST, task="sample.note")
    [older] = re.findall(r'href="\?(.*?)">Older', first)
    second = text(client, f"{LIST}?{html.unescape(older)}")
    assert "task=sample.note" in older
    shown = re.findall(rf"{LIST}(\d+)/", first + second)
    assert [int(number) for number in shown] == ids[::-1]
    assert ">Older" not in second


def test_a_place_in_a_list_that_was_made_up_is_not_found(visit: Callable[..., Client]) -> None:
    assert visit("view_job").get(LIST, {"after": "made up"}).status_code == 404


def test_a_job_shows_its_attempts_and_its_error(visit: Callable[..., Client], url: str) -> None:
    """Shows R12."""
    job = refuse.enqueue("a secret").id
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenure.job SET max_attempts = 1")
    work(app, url)
    client = visit("view_job")
    page = text(client, f"{LIST}{job}/")
    assert "Refused" in page
    assert "failed" in page
    assert "a secret" not in page
    assert "tenure.view_payload" in page


def test_arguments_results_and_messages_are_for_those_who_may_see_them(
    visit: Callable[..., Client], url: str
) -> None:
    job = note.enqueue(text="a secret").id
    work(app, url)
    client = visit("view_job", "view_payload")
    assert text(client, f"{LIST}{job}/").count("a secret") == 2


@app.task(name="sample.tell", max_attempts=1)
def tell(**args: Any) -> None:
    raise RuntimeError(f"with {args['password']} then {args['note']}")


def test_no_page_shows_a_secret(visit: Callable[..., Client], url: str) -> None:
    """Before, the page of a job showed its arguments and errors as they are."""
    canary, own = "zq9huntertwoxk4mpv7rw3ab", "wbqkdzpvmtrnhxlcygjfsaeu"
    jobs = [
        tell.enqueue(password=own, note=note, shapes=values(canary)).id
        for note in texts(canary).values()
    ]
    work(app, url)
    client = visit("view_job", "view_payload")
    pages = [text(client, LIST, state="failed"), *(text(client, f"{LIST}{job}/") for job in jobs)]
    assert [page for page in pages if canary[:16] in page or own in page] == []
    assert all("&lt;redacted&gt;" in page for page in pages[1:])


def test_the_pages_are_those_two() -> None:
    """A new page has to be looked at by the test above."""
    names = [pattern.name for pattern in site.get_model_admin(Job).get_urls()]
    assert names == ["tenure_job_changelist", "tenure_job_change"]


@pytest.mark.parametrize("path", [LIST, f"{LIST}1/"])
def test_without_the_permission_nothing_is_seen(visit: Callable[..., Client], path: str) -> None:
    note.enqueue()
    assert visit("view_payload").get(path).status_code == 403
    assert Client().get(path).status_code == 302


@pytest.mark.parametrize("path", ["add/", "1/delete/", "1/change/", "1/history/"])
def test_there_is_no_page_that_changes_anything(visit: Callable[..., Client], path: str) -> None:
    note.enqueue()
    user = User.objects.create_superuser("root")
    client = visit("view_job")
    client.force_login(user)
    assert client.get(LIST + path).status_code == 404
    assert client.post(LIST + path).status_code == 404


@pytest.mark.parametrize("number", [0, 99, 2**63, 10**30])
def test_a_job_that_is_not_there_is_not_found(visit: Callable[..., Client], number: int) -> None:
    assert visit("view_job").get(f"{LIST}{number}/").status_code == 404

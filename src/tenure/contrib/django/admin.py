"""Read-only pages for jobs in Django's admin. They call `app.admin` and count no rows."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from tenure.admin import State
from tenure.contrib.django import app
from tenure.contrib.django.models import Job
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Job]
else:
    # Only its stubs can be subscripted.
    _ModelAdmin = admin.ModelAdmin

_PAGE = 50
_STATES = list(State)
_NEWEST_ID = 2**63 - 1


@admin.register(Job)
class JobAdmin(_ModelAdmin):
    """A job list with filters for state, queue and task, and a page with each job's attempts."""

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        """Deny: jobs can only be added by enqueueing."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:  # noqa: ARG002 - Django's signature
        """Deny: the pages are read-only."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:  # noqa: ARG002 - Django's signature
        """Deny: the pages are read-only."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Return the two pages, under Django's names."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name="tenure_job_changelist"),
            path("<int:job_id>/", view(self.job_view), name="tenure_job_change"),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a page of jobs in one state, newest first."""
        self._allow(request)
        filters = {
            name: request.GET.get(name) or "" for name in ("state", "queue", "task", "after")
        }
        state = State(filters["state"]) if filters["state"] in _STATES else State.QUEUED
        try:
            page = app.admin.jobs.list(
                state,
                queue=filters["queue"] or None,
                task=filters["task"] or None,
                count=_PAGE,
                after=filters["after"] or None,
                largest=0,
            )
        except InvalidValue as error:
            raise Http404(str(error)) from error
        redactor = app.admin.settings.redactor()
        query = request.GET.copy()
        query["after"] = page.next or ""
        context = {
            "title": "Jobs",
            "states": _STATES,
            "state": state,
            "filters": filters,
            "jobs": [redactor.job(job) for job in page.jobs],
            "next": query.urlencode() if page.next else None,
        }
        return self._page(request, "admin/tenure/jobs.html", {**context, **(extra_context or {})})

    def job_view(self, request: HttpRequest, job_id: int) -> HttpResponse:
        """Show one job with its attempts. Its arguments and result require a permission."""
        self._allow(request)
        job = app.admin.jobs.get(job_id) if job_id <= _NEWEST_ID else None
        if job is None:
            raise Http404(f"job {job_id} does not exist, or was removed")
        redactor = app.admin.settings.redactor()
        context = {
            "title": f"Job {job.id}",
            "job": redactor.job(job),
            "attempts": [redactor.attempt(one, of=job) for one in app.admin.jobs.attempts(job_id)],
            "sees_payload": self._sees_payload(request),
        }
        return self._page(request, "admin/tenure/job.html", context)

    def _allow(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _sees_payload(self, request: HttpRequest) -> bool:
        user: Any = request.user  # The project may use its own user model.
        return bool(user.has_perm("tenure.view_payload"))

    def _page(
        self, request: HttpRequest, template: str, context: dict[str, Any]
    ) -> TemplateResponse:
        whole = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, template, whole)

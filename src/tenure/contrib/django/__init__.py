"""Tenure in a Django project: put `tenure.contrib.django` into INSTALLED_APPS.

`app` is the project's `Tenure`, made from the settings when it is first asked for. Nothing else
is imported here: Django loads this package before any app is ready.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.contrib.django.project import DjangoTenure

    app: DjangoTenure

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """Return the project's `app`, made when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tenure.contrib.django.project import get_app  # noqa: PLC0415 - reads the settings

    return get_app()

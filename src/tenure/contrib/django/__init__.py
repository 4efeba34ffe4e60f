"""Tenure in a Django project: add `tenure.contrib.django` to INSTALLED_APPS.

`app` is the project's `Tenure` instance, created from the settings on first use. Django loads this
package before its apps are ready, so the package imports nothing else.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.contrib.django.project import DjangoTenure

    app: DjangoTenure

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """Return the project's `app`, created on first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tenure.contrib.django.project import get_app  # noqa: PLC0415 - reads the settings

    return get_app()

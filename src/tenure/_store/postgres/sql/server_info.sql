-- Read the server's version and clock, and this session's role, database and connection.
-- Reads settings only; locks nothing.
SELECT
    current_setting('server_version') AS version,
    current_setting('server_version_num')::integer AS number,
    quote_ident(current_user) AS role,
    quote_ident(current_database()) AS database,
    clock_timestamp() AS now,
    current_setting('is_superuser') = 'on' AS is_superuser,
    coalesce(
        inet_client_addr() <<= inet '127.0.0.0/8' OR inet_client_addr() = inet '::1', true
    ) AS is_local,
    coalesce(
        (SELECT c.ssl FROM pg_catalog.pg_stat_ssl AS c WHERE c.pid = pg_backend_pid()), false
    ) AS is_encrypted

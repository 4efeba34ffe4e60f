-- What an operator should know of the server: its release, its clock, who this session is.
-- Reads settings only; locks nothing.
SELECT
    current_setting('server_version') AS version,
    current_setting('server_version_num')::integer AS number,
    quote_ident(current_user) AS role,
    quote_ident(current_database()) AS database,
    clock_timestamp() AS now

-- What an operator should know of the server: its release, its durability, its clock.
-- Reads settings only; locks nothing.
SELECT
    current_setting('server_version') AS version,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_user::text AS role,
    clock_timestamp() AS now

-- $1 tasks, $2 signatures, $3 queue, $4 most, $5 now
-- For each group of dead letters, count how many ended in each of the last 24 hours (`ago`, 0 for
-- the last), among its $4 newest; for one queue or for all.
-- Uses job_failed_group_idx; locks nothing.
SELECT g.nth, floor(date_part('epoch', n.now - f.ended_at) / 3600)::integer AS ago, count(*) AS ended
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS g (task, signature, nth)
CROSS JOIN (SELECT coalesce($5::timestamptz, statement_timestamp()) AS now) AS n
CROSS JOIN LATERAL (
    SELECT l.ended_at, l.queue FROM /*schema.*/job_failed AS l
    WHERE l.task = g.task AND coalesce(l.error_signature, '') = coalesce(g.signature, '')
    ORDER BY l.ended_at DESC, l.id DESC
    LIMIT $4::integer
) AS f
WHERE f.ended_at > n.now - interval '24 hours' AND (f.queue = $3::text OR $3 IS NULL)
GROUP BY 1, 2

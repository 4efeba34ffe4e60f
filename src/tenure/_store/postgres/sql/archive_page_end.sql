-- $1 day, $2 before, $3 searched
-- Find where a page of $3 of one day's archived jobs ends, counting down from an id; no row if the
-- day has fewer. Ids have gaps within a day, so rows are counted.
-- Uses that day's primary key backwards; locks nothing.
SELECT a.id
FROM /*schema.*/job_archive AS a
WHERE a.filed_on = $1::date AND a.id < $2::bigint
ORDER BY a.id DESC
OFFSET $3::integer - 1
LIMIT 1

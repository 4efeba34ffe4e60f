-- $1 day, $2 before, $3 searched
-- Where a stretch of so many archived jobs of one day ends, counted down from an id; no row if the
-- day has fewer. Ids of a day have gaps, so that they are counted.
-- Uses that day's primary key backwards; locks nothing.
SELECT a.id
FROM /*schema.*/job_archive AS a
WHERE a.filed_on = $1::date AND a.id < $2::bigint
ORDER BY a.id DESC
OFFSET $3::integer - 1
LIMIT 1

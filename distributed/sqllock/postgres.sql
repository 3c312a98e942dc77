-- The statements that PostgreSQL has for itself, beside those of common.sql. clock_timestamp() is read when a
-- statement runs, so never before the client has sent it.

-- name: schema
CREATE TABLE IF NOT EXISTS {locks} (
	name  text COLLATE "C" PRIMARY KEY,
	owner text,
	token bigint NOT NULL,
	ends  timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS {queue} (
	id    bigserial PRIMARY KEY,
	name  text COLLATE "C" NOT NULL,
	owner text NOT NULL,
	ends  timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS {index} ON {indexed} (name, id);
CREATE TABLE IF NOT EXISTS {rows} (name text COLLATE "C" PRIMARY KEY);
CREATE TABLE IF NOT EXISTS {clients} (id text COLLATE "C" PRIMARY KEY, identity text NOT NULL, ends timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS {permits} (
	name    text COLLATE "C" NOT NULL,
	owner   text COLLATE "C" NOT NULL,
	permits bigint NOT NULL,
	token   bigint NOT NULL,
	ends    timestamptz NOT NULL,
	PRIMARY KEY (name, owner)
);
CREATE TABLE IF NOT EXISTS {semaphores} (name text COLLATE "C" PRIMARY KEY, token bigint NOT NULL)

-- Table. Frees the lock, and wakes the waiters. $1 name, $2 owner, $3 channel.
-- name: release and notify
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, $1) AS text)

-- Frees all locks of {which}, and wakes their waiters. $1 channel, and then names and owners.
-- name: release all and notify
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE {which} RETURNING name)
SELECT count(*), max(CAST(pg_notify($1, name) AS text)) FROM freed

-- Frees the lock by force, wakes the waiters, and tells the holder, see noticed. $1 name, $2 owner, $3 channel.
-- name: break
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, $1) AS text) || CAST(pg_notify($3, $2 || ' ' || $1) AS text)

-- Takes the lock as acquire does, for a waiter that asks again: whether it has taken the lock, and what rest tells.
-- It only reads while the lock is held. No row if another client was quicker. $1 name, $2 owner, $3 lease.
-- name: acquire again
WITH held AS (
	SELECT token, {left} AS rest, owner FROM {locks} WHERE name = $1 AND owner IS NOT NULL AND ends > {now}
), taken AS (
	INSERT INTO {locks} AS l (name, owner, token, ends) SELECT $1, $2, 1, {after $3} WHERE NOT EXISTS (SELECT 1 FROM held)
	ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = l.token + 1, ends = {after $3}
	WHERE l.owner IS NULL OR l.ends <= {now}
	RETURNING token
)
SELECT true, 0, token, '' FROM taken UNION ALL SELECT false, rest, token, owner FROM held

-- Table with a queue. What queue.go says of a request, in one statement, so that no client can stop while it keeps
-- the row locked. It only reads if the asker waits in vain and its place is in no danger: seen. Whether it has taken
-- the lock, how long the lock is not free, its token, its last holder, and how long the first other waiter keeps
-- its place. No row if the lock has none. $1 name, $2 owner, $3 lease, $4 wait.
-- name: ask
WITH head AS (
	SELECT owner, {left} AS place FROM {queue} WHERE name = $1 AND ends > {now} ORDER BY id LIMIT 1
), mine AS (
	SELECT {left} AS place FROM {queue} WHERE name = $1 AND owner = $2
), seen AS (
	SELECT CASE WHEN owner IS NULL THEN 0 ELSE {left} END AS rest, token, owner FROM {locks}
	WHERE name = $1 AND EXISTS (SELECT 1 FROM mine WHERE place > CAST($4 AS bigint) / 2)
		AND (owner IS NOT NULL AND ends > {now} OR EXISTS (SELECT 1 FROM head WHERE owner <> $2))
), lock AS (
	SELECT CASE WHEN owner IS NULL THEN 0 ELSE {left} END AS rest, token, owner FROM {locks}
	WHERE name = $1 AND NOT EXISTS (SELECT 1 FROM seen) FOR UPDATE
), taken AS (
	UPDATE {locks} AS l SET owner = $2, token = l.token + 1, ends = {after $3} FROM lock
	WHERE l.name = $1 AND lock.rest <= 0 AND NOT EXISTS (SELECT 1 FROM head WHERE owner <> $2)
	RETURNING l.token
), gone AS (
	DELETE FROM {queue} WHERE name = $1 AND (owner = $2 OR ends <= {now}) AND EXISTS (SELECT 1 FROM taken)
), stays AS (
	UPDATE {queue} SET ends = {after $4} WHERE name = $1 AND owner = $2
		AND EXISTS (SELECT 1 FROM lock) AND NOT EXISTS (SELECT 1 FROM taken)
), comes AS (
	INSERT INTO {queue} (name, owner, ends) SELECT $1, $2, {after $4} FROM lock
	WHERE NOT EXISTS (SELECT 1 FROM taken) AND NOT EXISTS (SELECT 1 FROM mine)
		AND NOT (rest > 0 AND owner IS NOT DISTINCT FROM $2)
)
SELECT EXISTS (SELECT 1 FROM taken), rest, COALESCE((SELECT token FROM taken), token), COALESCE(owner, ''),
	COALESCE((SELECT place FROM head WHERE owner <> $2), 0)
FROM (SELECT * FROM seen UNION ALL SELECT * FROM lock) AS s

-- Frees the lock, removes what a late request has left in the queue, and wakes the first waiter, or all of them if
-- there is none in the queue. $1 name, $2 owner, $3 channel, or empty.
-- name: release in order
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1),
gone AS (DELETE FROM {queue} WHERE name = $1 AND owner = $2),
head AS (SELECT owner FROM {queue} WHERE name = $1 AND owner <> $2 AND ends > {now} ORDER BY id LIMIT 1)
SELECT (SELECT count(*) FROM freed), CASE WHEN CAST($3 AS text) <> '' THEN
	CAST(pg_notify($3, COALESCE('next ' || (SELECT owner FROM head) || ' ' || $1, $1)) AS text) END

-- Does the same for all locks of {which}, whose arguments are names and owners. The statement without notices
-- wakes nobody.
-- name: release all in order
WITH gone AS (DELETE FROM {queue} WHERE {which})
UPDATE {locks} SET owner = NULL WHERE {which}

-- $1 channel, and then names and owners.
-- name: release all in order and notify
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE {which} RETURNING name),
gone AS (DELETE FROM {queue} WHERE {which} RETURNING id),
heads AS (
	SELECT f.name, (SELECT q.owner FROM {queue} AS q WHERE q.name = f.name AND q.ends > {now}
		AND q.id NOT IN (SELECT id FROM gone) ORDER BY q.id LIMIT 1) AS head
	FROM freed AS f
)
SELECT count(*), max(CAST(pg_notify($1, COALESCE('next ' || head || ' ' || name, name)) AS text)) FROM heads

-- Gives the owner's place up, and wakes as a release does: it may have been the owner's turn. $1 name, $2 owner,
-- $3 channel, or empty.
-- name: leave in order
WITH gone AS (DELETE FROM {queue} WHERE name = $1 AND owner = $2 RETURNING 1),
head AS (SELECT owner FROM {queue} WHERE name = $1 AND owner <> $2 AND ends > {now} ORDER BY id LIMIT 1)
SELECT (SELECT count(*) FROM gone), CASE WHEN CAST($3 AS text) <> '' THEN
	CAST(pg_notify($3, COALESCE('next ' || (SELECT owner FROM head) || ' ' || $1, $1)) AS text) END

-- Semaphore. What semaphore.go says of an acquisition, in one statement. The token is compared when the row of the
-- semaphore is locked, and was read together with the permits. The token of the acquisition, or 0; the permits that
-- living holders have; how long the first lease lasts; the last token; the token and the lease of the owner. No row
-- if the semaphore has none. $1 name, $2 owner, $3 lease, $4 permits, $5 size.
-- name: ask permits
WITH seen AS (
	SELECT token FROM {semaphores} WHERE name = $1
), gone AS (
	DELETE FROM {permits} WHERE name = $1 AND ends <= {now} RETURNING permits
), held AS (
	SELECT COALESCE(sum(permits), 0) - COALESCE((SELECT sum(permits) FROM gone), 0) AS taken,
		COALESCE(sum(permits) FILTER (WHERE ends > {now}), 0) AS living,
		COALESCE(min({left}) FILTER (WHERE ends > {now}), 0) AS next,
		COALESCE(max(token) FILTER (WHERE owner = $2 AND ends > {now}), 0) AS own,
		COALESCE(max({left}) FILTER (WHERE owner = $2), 0) AS lasts
	FROM {permits} WHERE name = $1
), taken AS (
	UPDATE {semaphores} AS s SET token = s.token + 1 FROM seen, held
	WHERE s.name = $1 AND s.token = seen.token AND held.own = 0
		AND held.taken <= CAST($5 AS bigint) - CAST($4 AS bigint)
	RETURNING s.token
), given AS (
	INSERT INTO {permits} (name, owner, permits, token, ends)
	SELECT $1, $2, CAST($4 AS bigint), token, {after $3} FROM taken
)
SELECT COALESCE((SELECT token FROM taken), 0), CAST(living AS bigint), next, seen.token, own, lasts FROM seen, held

-- Gives permits back, and wakes the waiters. $1 name, $2 owner, $3 channel.
-- name: release permits and notify
WITH freed AS (DELETE FROM {permits} WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, 'permits ' || $1) AS text)

-- Gives all permits of {which} back, and wakes the waiters. $1 channel, and then names and owners.
-- name: release all permits and notify
WITH freed AS (DELETE FROM {permits} WHERE {which} RETURNING name)
SELECT count(*), max(CAST(pg_notify($1, 'permits ' || name) AS text)) FROM freed

-- Row. Locks the row without waiting: how many rows it has locked, how many there are, and the session. The server
-- would write a line into its log for each NOWAIT that fails. $1 name.
-- name: lock row
WITH taken AS (SELECT 1 FROM {rows} WHERE name = $1 FOR UPDATE SKIP LOCKED)
SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM {rows} WHERE name = $1), pg_backend_pid()

-- Locks the row when its holder's transaction has ended. $1 name.
-- name: wait for row
SELECT 1 FROM {rows} WHERE name = $1 FOR UPDATE

-- How many locks a session waits for. $1 session.
-- name: waiting
SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted

-- $1 name.
-- name: make row
INSERT INTO {rows} (name) VALUES ($1) ON CONFLICT (name) DO NOTHING

-- Wakes the waiters when the transaction is committed. $1 channel, $2 name.
-- name: notify
SELECT pg_notify($1, $2)

-- Advisory. The session.
-- name: session
SELECT pg_backend_pid()

-- The session, and no holder: the server does not tell it cheaply. Takes the lock, which is 1 or 0, unless another
-- session answers, which is -1. $1 key, $2 session.
-- name: take
SELECT pg_backend_pid(), CAST(NULL AS bigint), CASE WHEN pg_backend_pid() = $2 THEN CAST(pg_try_advisory_lock($1) AS integer) ELSE -1 END

-- Takes the lock when its holder has given it back, which is 1, unless another session answers, which is -1. $1 key,
-- $2 session.
-- name: wait
SELECT pg_backend_pid(), CASE WHEN pg_backend_pid() = $2 THEN length(CAST(pg_advisory_lock($1) AS text)) + 1 ELSE -1 END

-- The session, and the session again if it has the lock. $1 key.
-- name: taken
SELECT pg_backend_pid(), (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND CAST(classid AS bigint) = (CAST($1 AS bigint) >> 32) & 4294967295
	AND CAST(objid AS bigint) = CAST($1 AS bigint) & 4294967295 AND objsubid = 1 AND mode = 'ExclusiveLock')

-- $1 key.
-- name: give back
SELECT CAST(pg_advisory_unlock($1) AS integer), ''

-- $1 key, $2 channel, $3 name.
-- name: give back and notify
SELECT CAST(pg_advisory_unlock($1) AS integer), CAST(pg_notify($2, $3) AS text)

-- The session that has the lock of an Advisory, its program and its address. $1 key.
-- name: inspect advisory
SELECT l.pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), '')
FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND CAST(l.classid AS bigint) = (CAST($1 AS bigint) >> 32) & 4294967295
	AND CAST(l.objid AS bigint) = CAST($1 AS bigint) & 4294967295 AND l.objsubid = 1 AND l.mode = 'ExclusiveLock'

-- The encoding of what the client sends. The server converts it to that of the database, except for SQL_ASCII.
-- name: encoding
SELECT CASE WHEN getdatabaseencoding() = 'SQL_ASCII' THEN 'UTF8' ELSE current_setting('client_encoding') END

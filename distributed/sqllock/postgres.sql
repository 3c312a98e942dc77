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
CREATE TABLE IF NOT EXISTS {clients} (id text COLLATE "C" PRIMARY KEY, identity text NOT NULL, ends timestamptz NOT NULL)

-- Table. Frees the lock, and wakes the waiters. $1 name, $2 owner, $3 channel.
-- name: release and notify
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, $1) AS text)

-- Frees the lock by force, wakes the waiters, and tells the holder, see noticed. $1 name, $2 owner, $3 channel.
-- name: break
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, $1) AS text) || CAST(pg_notify($3, $2 || ' ' || $1) AS text)

-- Gives the owner's place up, and wakes the waiters: it may have been the owner's turn. $1 name, $2 owner, $3 channel.
-- name: leave and notify
WITH gone AS (DELETE FROM {queue} WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM gone), CAST(pg_notify($3, $1) AS text)

-- Row. Locks the row without waiting: how many rows it has locked, and how many there are. The server would
-- write a line into its log for each NOWAIT that fails. $1 name.
-- name: lock row
WITH taken AS (SELECT 1 FROM {rows} WHERE name = $1 FOR UPDATE SKIP LOCKED)
SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM {rows} WHERE name = $1)

-- $1 name.
-- name: make row
INSERT INTO {rows} (name) VALUES ($1) ON CONFLICT (name) DO NOTHING

-- Wakes the waiters when the transaction is committed. $1 channel, $2 name.
-- name: notify
SELECT pg_notify($1, $2)

-- Advisory. The session. The server does not tell cheaply which one has the lock. $1 key.
-- name: session
SELECT pg_backend_pid(), CAST(NULL AS bigint)

-- Takes the lock, which is 1 or 0, unless another session answers, which is -1. $1 key, $2 session.
-- name: take
SELECT pg_backend_pid(), CASE WHEN pg_backend_pid() = $2 THEN CAST(pg_try_advisory_lock($1) AS integer) ELSE -1 END

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

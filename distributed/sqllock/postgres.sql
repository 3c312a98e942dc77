-- The statements for PostgreSQL, in the order in which a lock's life needs them. The database's clock alone
-- writes and compares the ends of leases. clock_timestamp() is read when a statement runs, so never before the
-- client has sent it. Times are microseconds.

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

-- Table. Takes the lock if it is free or its lease is over, and returns the token only then.
-- $1 name, $2 owner, $3 lease.
-- name: acquire
INSERT INTO {locks} AS l (name, owner, token, ends)
VALUES ($1, $2, 1, clock_timestamp() + CAST($3 AS bigint) * interval '1 microsecond')
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = l.token + 1,
	ends = clock_timestamp() + CAST($3 AS bigint) * interval '1 microsecond'
WHERE l.owner IS NULL OR l.ends <= clock_timestamp()
RETURNING token

-- How long the lock is not free, the token of its holder, and the holder. $1 name.
-- name: rest
SELECT CASE WHEN owner IS NULL THEN 0 ELSE CAST(extract(epoch FROM ends - clock_timestamp()) * 1000000 AS bigint) END, token,
	COALESCE(owner, '')
FROM {locks} WHERE name = $1

-- The token of the owner's hold. $1 name, $2 owner.
-- name: lookup
SELECT token FROM {locks} WHERE name = $1 AND owner = $2 AND ends > clock_timestamp()

-- Extends the holds that are not over. $1 lease, and then the names and owners of {which}.
-- name: renew
UPDATE {locks} SET ends = clock_timestamp() + CAST($1 AS bigint) * interval '1 microsecond'
WHERE ends > clock_timestamp() AND ({which})

-- The same holds, after a renewal that missed some. It has all arguments of the renewal.
-- name: renewed
SELECT name, owner FROM {locks} WHERE ends > clock_timestamp() AND CAST($1 AS bigint) > 0 AND ({which})

-- $1 name, $2 owner.
-- name: release
UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2

-- $1 name, $2 owner, $3 channel.
-- name: release and notify
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, $1) AS text)

-- Frees the lock by force, wakes the waiters, and tells the holder, see noticed. $1 name, $2 owner, $3 channel.
-- name: break
WITH freed AS (UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2 RETURNING 1)
SELECT (SELECT count(*) FROM freed), CAST(pg_notify($3, $1) AS text) || CAST(pg_notify($3, $2 || ' ' || $1) AS text)

-- Table with a queue. How long the lock is not free, and how many living waiters are before the owner. No row
-- if the owner is not in the queue, or its place has to be extended. $1 name, $2 owner, $3 wait.
-- name: standing
SELECT CASE WHEN l.owner IS NULL THEN 0 ELSE CAST(extract(epoch FROM l.ends - clock_timestamp()) * 1000000 AS bigint) END,
	(SELECT count(*) FROM {queue} AS p WHERE p.name = $1 AND p.ends > clock_timestamp() AND p.id < q.id)
FROM {locks} AS l JOIN {queue} AS q ON q.name = l.name
WHERE l.name = $1 AND q.owner = $2 AND q.ends > clock_timestamp() + CAST($3 AS bigint) / 2 * interval '1 microsecond'

-- Makes the row of a lock that has none. $1 name.
-- name: make lock
INSERT INTO {locks} (name, token, ends) VALUES ($1, 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING

-- Locks the row, and is how long the lock is not free. $1 name.
-- name: lock
SELECT CASE WHEN owner IS NULL THEN 0 ELSE CAST(extract(epoch FROM ends - clock_timestamp()) * 1000000 AS bigint) END
FROM {locks} WHERE name = $1 FOR UPDATE

-- The head of the queue, and whether it is dead. $1 name.
-- name: first
SELECT id, owner, CASE WHEN ends <= clock_timestamp() THEN 1 ELSE 0 END FROM {queue} WHERE name = $1 ORDER BY id LIMIT 1

-- Removes a waiter. $1 id.
-- name: remove
DELETE FROM {queue} WHERE id = $1

-- Makes the owner the holder. $1 name, $2 owner, $3 lease.
-- name: grant
UPDATE {locks} SET owner = $2, token = token + 1, ends = clock_timestamp() + CAST($3 AS bigint) * interval '1 microsecond'
WHERE name = $1

-- Its token. $1 name.
-- name: granted
SELECT token FROM {locks} WHERE name = $1

-- Extends the owner's place. $1 name, $2 owner, $3 wait.
-- name: stay
UPDATE {queue} SET ends = clock_timestamp() + CAST($3 AS bigint) * interval '1 microsecond' WHERE name = $1 AND owner = $2

-- Enqueues the owner. $1 name, $2 owner, $3 wait.
-- name: enqueue
INSERT INTO {queue} (name, owner, ends)
VALUES ($1, $2, clock_timestamp() + CAST($3 AS bigint) * interval '1 microsecond')

-- Gives the owner's place up. $1 name, $2 owner.
-- name: leave
DELETE FROM {queue} WHERE name = $1 AND owner = $2

-- The same, and wakes the waiters: it may have been the owner's turn. $1 name, $2 owner, $3 channel.
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

-- Inspection. The holder, the token, and how long the lock is not free. $1 name.
-- name: inspect
SELECT owner, token, CAST(extract(epoch FROM ends - clock_timestamp()) * 1000000 AS bigint) FROM {locks}
WHERE name = $1 AND owner IS NOT NULL AND ends > clock_timestamp()

-- A page of the names of held locks. $1 the last name of the page before, $2 how many.
-- name: names
SELECT name FROM {locks} WHERE name > $1 AND owner IS NOT NULL AND ends > clock_timestamp() ORDER BY name LIMIT $2

-- The living waiters in order. $1 name.
-- name: inspect queue
SELECT owner FROM {queue} WHERE name = $1 AND ends > clock_timestamp() ORDER BY id

-- What a client tells of its process. $1 client.
-- name: identity
SELECT identity FROM {clients} WHERE id = $1

-- $1 client, $2 identity, $3 for how long.
-- name: announce
INSERT INTO {clients} (id, identity, ends)
VALUES ($1, $2, clock_timestamp() + CAST($3 AS bigint) * interval '1 microsecond')
ON CONFLICT (id) DO UPDATE SET identity = excluded.identity, ends = excluded.ends

-- name: forget
DELETE FROM {clients} WHERE ends <= clock_timestamp()

-- The session that has the lock of an Advisory, its program and its address. $1 key.
-- name: inspect advisory
SELECT l.pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), '')
FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND CAST(l.classid AS bigint) = (CAST($1 AS bigint) >> 32) & 4294967295
	AND CAST(l.objid AS bigint) = CAST($1 AS bigint) & 4294967295 AND l.objsubid = 1 AND l.mode = 'ExclusiveLock'

-- The same of a Row: the session whose transaction has locked the row. $1 name.
-- name: inspect row
SELECT l.pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), '')
FROM {rows} AS r JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = r.xmax
	AND l.mode = 'ExclusiveLock' AND l.granted
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE r.name = $1

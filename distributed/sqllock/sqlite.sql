-- The statements for SQLite, in the order in which a lock's life needs them. {now} is the machine's clock in
-- milliseconds. A lease is given in microseconds, and rounded up by a millisecond, since the present one may
-- be almost over.

-- name: schema
CREATE TABLE IF NOT EXISTS {locks} (
	name  TEXT NOT NULL PRIMARY KEY,
	owner TEXT,
	token INTEGER NOT NULL,
	ends  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS {queue} (
	id    INTEGER PRIMARY KEY AUTOINCREMENT,
	name  TEXT NOT NULL,
	owner TEXT NOT NULL,
	ends  INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS {index} ON {indexed} (name, id);
CREATE TABLE IF NOT EXISTS {rows} (name TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS {clients} (
	id       TEXT NOT NULL PRIMARY KEY,
	identity TEXT NOT NULL,
	ends     INTEGER NOT NULL
) WITHOUT ROWID

-- Table. Takes the lock if it is free or its lease is over, and returns the token only then.
-- $1 name, $2 owner, $3 lease.
-- name: acquire
INSERT INTO {locks} AS l (name, owner, token, ends) VALUES ($1, $2, 1, {now} + ($3 + 999) / 1000 + 1)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = l.token + 1, ends = {now} + ($3 + 999) / 1000 + 1
WHERE l.owner IS NULL OR l.ends <= {now}
RETURNING token

-- How long the lock is not free, the token of its holder, and the holder. $1 name.
-- name: rest
SELECT CASE WHEN owner IS NULL THEN 0 ELSE (ends - {now}) * 1000 END, token, COALESCE(owner, '') FROM {locks} WHERE name = $1

-- The token of the owner's hold. $1 name, $2 owner.
-- name: lookup
SELECT token FROM {locks} WHERE name = $1 AND owner = $2 AND ends > {now}

-- Extends the holds that are not over. $1 lease, and then the names and owners of {which}.
-- name: renew
UPDATE {locks} SET ends = {now} + ($1 + 999) / 1000 + 1 WHERE ends > {now} AND ({which})

-- The same holds, after a renewal that missed some. It has all arguments of the renewal.
-- name: renewed
SELECT name, owner FROM {locks} WHERE ends > {now} AND $1 > 0 AND ({which})

-- $1 name, $2 owner.
-- name: release
UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2

-- Table with a queue. How long the lock is not free, and how many living waiters are before the owner. No row
-- if the owner is not in the queue, or its place has to be extended. $1 name, $2 owner, $3 wait.
-- name: standing
SELECT CASE WHEN l.owner IS NULL THEN 0 ELSE (l.ends - {now}) * 1000 END,
	(SELECT count(*) FROM {queue} AS p WHERE p.name = $1 AND p.ends > {now} AND p.id < q.id)
FROM {locks} AS l JOIN {queue} AS q ON q.name = l.name
WHERE l.name = $1 AND q.owner = $2 AND q.ends > {now} + ($3 / 2 + 999) / 1000 + 1

-- Makes the row of a lock that has none. It begins each transaction: one that begins with reading cannot always
-- go on to write. $1 name.
-- name: make lock
INSERT INTO {locks} (name, token, ends) VALUES ($1, 0, {now}) ON CONFLICT (name) DO NOTHING

-- How long the lock is not free. The transaction has the database. $1 name.
-- name: lock
SELECT CASE WHEN owner IS NULL THEN 0 ELSE (ends - {now}) * 1000 END FROM {locks} WHERE name = $1

-- The head of the queue, and whether it is dead. $1 name.
-- name: first
SELECT id, owner, CASE WHEN ends <= {now} THEN 1 ELSE 0 END FROM {queue} WHERE name = $1 ORDER BY id LIMIT 1

-- Removes a waiter. $1 id.
-- name: remove
DELETE FROM {queue} WHERE id = $1

-- Makes the owner the holder. $1 name, $2 owner, $3 lease.
-- name: grant
UPDATE {locks} SET owner = $2, token = token + 1, ends = {now} + ($3 + 999) / 1000 + 1 WHERE name = $1

-- Its token. $1 name.
-- name: granted
SELECT token FROM {locks} WHERE name = $1

-- Extends the owner's place. $1 name, $2 owner, $3 wait.
-- name: stay
UPDATE {queue} SET ends = {now} + ($3 + 999) / 1000 + 1 WHERE name = $1 AND owner = $2

-- Enqueues the owner. $1 name, $2 owner, $3 wait.
-- name: enqueue
INSERT INTO {queue} (name, owner, ends) VALUES ($1, $2, {now} + ($3 + 999) / 1000 + 1)

-- Gives the owner's place up. $1 name, $2 owner.
-- name: leave
DELETE FROM {queue} WHERE name = $1 AND owner = $2

-- Row. Takes the database for writing, as every write does, and changes nothing. $1 name.
-- name: lock row
DELETE FROM {rows} WHERE name = $1

-- Inspection. The holder, the token, and how long the lock is not free. $1 name.
-- name: inspect
SELECT owner, token, (ends - {now}) * 1000 FROM {locks}
WHERE name = $1 AND owner IS NOT NULL AND ends > {now}

-- A page of the names of held locks. $1 the last name of the page before, $2 how many.
-- name: names
SELECT name FROM {locks} WHERE name > $1 AND owner IS NOT NULL AND ends > {now} ORDER BY name LIMIT $2

-- The living waiters in order. $1 name.
-- name: inspect queue
SELECT owner FROM {queue} WHERE name = $1 AND ends > {now} ORDER BY id

-- What a client tells of its process. $1 client.
-- name: identity
SELECT identity FROM {clients} WHERE id = $1

-- $1 client, $2 identity, $3 for how long.
-- name: announce
INSERT INTO {clients} (id, identity, ends)
VALUES ($1, $2, {now} + ($3 + 999) / 1000 + 1)
ON CONFLICT (id) DO UPDATE SET identity = excluded.identity, ends = excluded.ends

-- name: forget
DELETE FROM {clients} WHERE ends <= {now}

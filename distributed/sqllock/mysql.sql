-- The statements for MySQL and MariaDB, in the order in which a lock's life needs them. The database's clock
-- alone writes and compares the ends of leases. UTC_TIMESTAMP is the time when a statement begins, so never
-- before the client has sent it. Times are microseconds.

-- name: schema
CREATE TABLE IF NOT EXISTS {locks} (
	name  VARBINARY(255) NOT NULL PRIMARY KEY,
	owner VARBINARY(64),
	token BIGINT NOT NULL,
	ends  DATETIME(6) NOT NULL
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {queue} (
	id    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	name  VARBINARY(255) NOT NULL,
	owner VARBINARY(64) NOT NULL,
	ends  DATETIME(6) NOT NULL,
	KEY {index} (name, id)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {rows} (name VARBINARY(255) NOT NULL PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {clients} (
	id       VARBINARY(64) NOT NULL PRIMARY KEY,
	identity VARBINARY(4096) NOT NULL,
	ends     DATETIME(6) NOT NULL
) ENGINE=InnoDB

-- Table. Whether statements are committed, and the layout of the table, see checkLayout.
-- name: commits
SELECT @@autocommit

-- name: columns
SHOW COLUMNS FROM {locks}

-- name: indexes
SHOW INDEX FROM {locks}

-- Whether the engine of a table has transactions, and its name. The conditions open that table alone.
-- name: engine
SELECT COALESCE(e.TRANSACTIONS, ''), COALESCE(t.ENGINE, '') FROM information_schema.TABLES AS t
LEFT JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE
WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = {table}

-- Takes the lock if it is free or its lease is over. The id of the insertion is the token, or 0 if the lock is
-- another owner's. A server makes the assignments in this order, and each sees those before it. MariaDB with
-- SIMULTANEOUS_ASSIGNMENT or ORACLE in sql_mode makes them at once, and each sees the old values. The condition
-- of ends covers both: the owner was NULL or late, or is the new one already.
-- $1 name, $2 owner, $3 lease.
-- name: acquire
INSERT INTO {locks} (name, owner, token, ends)
VALUES ($1, $2, LAST_INSERT_ID(1), UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND)
ON DUPLICATE KEY UPDATE
	token = IF(owner IS NULL OR ends <= UTC_TIMESTAMP(6), LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0)),
	owner = IF(owner IS NULL OR ends <= UTC_TIMESTAMP(6), $2, owner),
	ends = IF(owner IS NULL OR ends <= UTC_TIMESTAMP(6) OR owner = $2,
		UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND, ends)

-- How long the lock is not free, the token of its holder, and the holder. $1 name.
-- name: rest
SELECT CASE WHEN owner IS NULL THEN 0 ELSE TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), ends) END, token,
	COALESCE(owner, '')
FROM {locks} WHERE name = $1

-- The token of the owner's hold. $1 name, $2 owner.
-- name: lookup
SELECT token FROM {locks} WHERE name = $1 AND owner = $2 AND ends > UTC_TIMESTAMP(6)

-- Extends the holds that are not over. $1 lease, and then the names and owners of {which}.
-- name: renew
UPDATE {locks} SET ends = UTC_TIMESTAMP(6) + INTERVAL $1 MICROSECOND WHERE ends > UTC_TIMESTAMP(6) AND ({which})

-- The same holds, after a renewal that missed some. It has all arguments of the renewal.
-- name: renewed
SELECT name, owner FROM {locks} WHERE ends > UTC_TIMESTAMP(6) AND $1 > 0 AND ({which})

-- $1 name, $2 owner.
-- name: release
UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2

-- Table with a queue. How long the lock is not free, and how many living waiters are before the owner. No row
-- if the owner is not in the queue, or its place has to be extended. $1 name, $2 owner, $3 wait.
-- name: standing
SELECT CASE WHEN l.owner IS NULL THEN 0 ELSE TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.ends) END,
	(SELECT count(*) FROM {queue} AS p WHERE p.name = $1 AND p.ends > UTC_TIMESTAMP(6) AND p.id < q.id)
FROM {locks} AS l JOIN {queue} AS q ON q.name = l.name
WHERE l.name = $1 AND q.owner = $2 AND q.ends > UTC_TIMESTAMP(6) + INTERVAL ($3 DIV 2) MICROSECOND

-- Makes the row of a lock that has none. $1 name.
-- name: make lock
INSERT IGNORE INTO {locks} (name, token, ends) VALUES ($1, 0, UTC_TIMESTAMP(6))

-- Locks the row, and is how long the lock is not free. $1 name.
-- name: lock
SELECT CASE WHEN owner IS NULL THEN 0 ELSE TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), ends) END
FROM {locks} WHERE name = $1 FOR UPDATE

-- The head of the queue, and whether it is dead. $1 name.
-- name: first
SELECT id, owner, CASE WHEN ends <= UTC_TIMESTAMP(6) THEN 1 ELSE 0 END FROM {queue} WHERE name = $1 ORDER BY id LIMIT 1

-- Removes a waiter. $1 id.
-- name: remove
DELETE FROM {queue} WHERE id = $1

-- Makes the owner the holder. $1 name, $2 owner, $3 lease.
-- name: grant
UPDATE {locks} SET owner = $2, token = token + 1, ends = UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND WHERE name = $1

-- Its token. $1 name.
-- name: granted
SELECT token FROM {locks} WHERE name = $1

-- Extends the owner's place. $1 name, $2 owner, $3 wait.
-- name: stay
UPDATE {queue} SET ends = UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND WHERE name = $1 AND owner = $2

-- Enqueues the owner. $1 name, $2 owner, $3 wait.
-- name: enqueue
INSERT INTO {queue} (name, owner, ends) VALUES ($1, $2, UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND)

-- Gives the owner's place up. $1 name, $2 owner.
-- name: leave
DELETE FROM {queue} WHERE name = $1 AND owner = $2

-- Row. Locks the row without waiting: how many rows it has locked, and how many there are. $1 name.
-- name: lock row
SELECT 1, 1 FROM {rows} WHERE name = $1 FOR UPDATE NOWAIT

-- $1 name.
-- name: make row
INSERT IGNORE INTO {rows} (name) VALUES ($1)

-- Advisory. The session, and the session that has the lock. $1 key.
-- name: session
SELECT CONNECTION_ID(), IS_USED_LOCK($1)

-- Takes the lock, which is 1 or 0, unless another session answers, which is -1. $1 key, $2 session.
-- name: take
SELECT CONNECTION_ID(), IF(CONNECTION_ID() = $2, GET_LOCK($1, 0), -1)

-- The session, and the session that has the lock. $1 key.
-- name: taken
SELECT CONNECTION_ID(), IS_USED_LOCK($1)

-- $1 key.
-- name: give back
SELECT RELEASE_LOCK($1), ''

-- Inspection. The holder, the token, and how long the lock is not free. $1 name.
-- name: inspect
SELECT owner, token, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), ends) FROM {locks}
WHERE name = $1 AND owner IS NOT NULL AND ends > UTC_TIMESTAMP(6)

-- A page of the names of held locks. $1 the last name of the page before, $2 how many.
-- name: names
SELECT name FROM {locks} WHERE name > $1 AND owner IS NOT NULL AND ends > UTC_TIMESTAMP(6) ORDER BY name LIMIT $2

-- The living waiters in order. $1 name.
-- name: inspect queue
SELECT owner FROM {queue} WHERE name = $1 AND ends > UTC_TIMESTAMP(6) ORDER BY id

-- What a client tells of its process. $1 client.
-- name: identity
SELECT identity FROM {clients} WHERE id = $1

-- $1 client, $2 identity, $3 for how long.
-- name: announce
INSERT INTO {clients} (id, identity, ends)
VALUES ($1, $2, UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND)
ON DUPLICATE KEY UPDATE identity = $2, ends = UTC_TIMESTAMP(6) + INTERVAL $3 MICROSECOND

-- name: forget
DELETE FROM {clients} WHERE ends <= UTC_TIMESTAMP(6)

-- The session that has the lock of an Advisory, and its address. $1 key.
-- name: inspect advisory
SELECT u.id, '', COALESCE(p.HOST, '') FROM (SELECT IS_USED_LOCK($1) AS id) AS u
LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = u.id WHERE u.id IS NOT NULL

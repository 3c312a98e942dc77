-- The statements that MySQL and MariaDB have for themselves, beside those of common.sql. UTC_TIMESTAMP is the time
-- when a statement begins, so never before the client has sent it.

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
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {permits} (
	name    VARBINARY(255) NOT NULL,
	owner   VARBINARY(64) NOT NULL,
	permits BIGINT NOT NULL,
	token   BIGINT NOT NULL,
	ends    DATETIME(6) NOT NULL,
	PRIMARY KEY (name, owner)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS {semaphores} (name VARBINARY(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB

-- The settings of the session that change what statements mean. LIMIT is for one of them, sql_select_limit.
-- name: modes
SELECT {modes} LIMIT 1

-- Table. Whether the engine of a table has transactions, its name, and the settings of the session. The conditions of
-- this statement and the next one open that table alone.
-- name: engine
SELECT COALESCE(e.TRANSACTIONS, ''), COALESCE(t.ENGINE, ''), {modes} FROM information_schema.TABLES AS t
LEFT JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE
WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = {table} LIMIT 1

-- Whether names are unique and all different, see checkLayout.
-- name: layout
SELECT EXISTS (SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}
		AND COLUMN_NAME = 'name' AND DATA_TYPE = 'varbinary' AND CHARACTER_MAXIMUM_LENGTH >= 255)
	AND EXISTS (SELECT 1 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}
		AND NON_UNIQUE = 0 GROUP BY INDEX_NAME
		HAVING COUNT(*) = 1 AND MIN(COLUMN_NAME) = 'name' AND MAX(SUB_PART) IS NULL)

-- Takes the lock if it is free or its lease is over. The id of the insertion is the token, or 0 if the lock is
-- another owner's. A server makes the assignments in this order, and each sees those before it. MariaDB with
-- SIMULTANEOUS_ASSIGNMENT or ORACLE in sql_mode makes them at once, and each sees the old values. The condition
-- of ends covers both: the owner was NULL or late, or is the new one already.
-- $1 name, $2 owner, $3 lease.
-- name: acquire
INSERT INTO {locks} (name, owner, token, ends)
VALUES ($1, $2, LAST_INSERT_ID(1), {after $3})
ON DUPLICATE KEY UPDATE
	token = IF(owner IS NULL OR ends <= {now}, LAST_INSERT_ID(token + 1), token + LAST_INSERT_ID(0)),
	owner = IF(owner IS NULL OR ends <= {now}, $2, owner),
	ends = IF(owner IS NULL OR ends <= {now} OR owner = $2,
		{after $3}, ends)

-- Makes the row of a lock that has none. $1 name.
-- name: make lock
INSERT IGNORE INTO {locks} (name, token, ends) VALUES ($1, 0, {now})

-- Makes the row of a semaphore that has none. $1 name.
-- name: make semaphore
INSERT IGNORE INTO {semaphores} (name, token) VALUES ($1, 0)

-- A row without permits, whose lease was over long ago, also by a clock that is set back. $1 name, $2 owner.
-- name: prepare permits
INSERT IGNORE INTO {permits} (name, owner, permits, token, ends) VALUES ($1, $2, 0, 0, '2000-01-01')

-- The isolation, if it is too weak for semaphores.
-- name: reads uncommitted
SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation') AND Value = 'READ-UNCOMMITTED'

-- Deletes it. $1 name, $2 owner.
-- name: unprepare permits
DELETE FROM {permits} WHERE name = $1 AND owner = $2 AND permits = 0

-- $1 name, $2 owner.
-- name: release permits
DELETE FROM {permits} WHERE name = $1 AND owner = $2 AND permits > 0

-- Gives the row permits and the next token if the last one is still $5 - 1. $1 name, $2 owner, $3 lease, $4 permits.
-- name: take permits
UPDATE {semaphores} AS s JOIN {permits} AS p ON p.name = s.name AND p.owner = $2
SET s.token = $5, p.token = $5, p.permits = $4, p.ends = {after $3}
WHERE s.name = $1 AND s.token = $5 - 1

-- Row. Locks the row without waiting: how many rows it has locked, how many there are, and no session. $1 name.
-- name: lock row
SELECT 1, 1, 0 FROM {rows} WHERE name = $1 FOR UPDATE NOWAIT

-- $1 name.
-- name: make row
INSERT IGNORE INTO {rows} (name) VALUES ($1)

-- Advisory. The session.
-- name: session
SELECT CONNECTION_ID()

-- The session, and the session that has the lock. Takes the lock, which is 1 or 0, if no session has it, unless another
-- session answers, which is -1. $1 key, $2 session.
-- name: take
SELECT CONNECTION_ID(), IS_USED_LOCK($1), IF(CONNECTION_ID() = $2, IF(IS_USED_LOCK($1) IS NULL, GET_LOCK($1, 0), 0), -1)

-- Takes the lock when its holder has given it back, which is 1. It is 0 if that takes longer than two seconds, and -1
-- if another session answers. The server does not look for a client that has gone before the time is over, and
-- drivers wait for an answer no longer than their readTimeout. $1 key, $2 session.
-- name: wait
SELECT CONNECTION_ID(), IF(CONNECTION_ID() = $2, COALESCE(GET_LOCK($1, 2), 0), -1)

-- How many statements of a session run. $1 session.
-- name: waiting
SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = $1 AND COMMAND <> 'Sleep'

-- The session, and the session that has the lock. $1 key.
-- name: taken
SELECT CONNECTION_ID(), IS_USED_LOCK($1)

-- $1 key.
-- name: give back
SELECT RELEASE_LOCK($1), ''

-- $1 client, $2 identity, $3 for how long.
-- name: announce
INSERT INTO {clients} (id, identity, ends)
VALUES ($1, $2, {after $3})
ON DUPLICATE KEY UPDATE identity = $2, ends = {after $3}

-- The session that has the lock of an Advisory, and its address. $1 key.
-- name: inspect advisory
SELECT u.id, '', COALESCE(p.HOST, '') FROM (SELECT IS_USED_LOCK($1) AS id) AS u
LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = u.id WHERE u.id IS NOT NULL

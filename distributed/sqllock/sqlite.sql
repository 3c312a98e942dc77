-- The statements that SQLite has for itself, beside those of common.sql. Its times are milliseconds. A lease is
-- given in microseconds, and rounded up by a millisecond, since the present one may be almost over.

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
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS {permits} (
	name    TEXT NOT NULL,
	owner   TEXT NOT NULL,
	permits INTEGER NOT NULL,
	token   INTEGER NOT NULL,
	ends    INTEGER NOT NULL,
	PRIMARY KEY (name, owner)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS {semaphores} (name TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID

-- Row. Takes the database for writing, as every write does, and changes nothing. $1 name.
-- name: lock row
DELETE FROM {rows} WHERE name = $1

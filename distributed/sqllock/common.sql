-- The statements of all databases, in the order in which a lock's life needs them. A database that needs another
-- one has it in its own file. The database's clock alone writes and compares the ends of leases: {now} is its time,
-- and {after $3} the time that is $3 later. {left} is how long ends is away. Times are microseconds.

-- Table. Takes the lock if it is free or its lease is over, and returns the token only then.
-- $1 name, $2 owner, $3 lease.
-- name: acquire
INSERT INTO {locks} AS l (name, owner, token, ends) VALUES ($1, $2, 1, {after $3})
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = l.token + 1, ends = {after $3}
WHERE l.owner IS NULL OR l.ends <= {now}
RETURNING token

-- How long the lock is not free, the token of its holder, and the holder. $1 name.
-- name: rest
SELECT CASE WHEN owner IS NULL THEN 0 ELSE {left} END, token, COALESCE(owner, '') FROM {locks} WHERE name = $1

-- The token of the owner's hold. $1 name, $2 owner.
-- name: lookup
SELECT token FROM {locks} WHERE name = $1 AND owner = $2 AND ends > {now}

-- Extends the holds that are not over. $1 lease, and then the names and owners of {which}.
-- name: renew
UPDATE {locks} SET ends = {after $1} WHERE ends > {now} AND ({which})

-- The same holds, after a renewal that missed some. It has all arguments of the renewal.
-- name: renewed
SELECT name, owner FROM {locks} WHERE ends > {now} AND {after $1} > {now} AND ({which})

-- $1 name, $2 owner.
-- name: release
UPDATE {locks} SET owner = NULL WHERE name = $1 AND owner = $2

-- Frees all locks of {which}, whose arguments are names and owners.
-- name: release all
UPDATE {locks} SET owner = NULL WHERE {which}

-- Table with a queue. How long the lock is not free, and how many living waiters are before the owner. No row
-- if the owner is not in the queue, or its place ends within $3. $1 name, $2 owner.
-- name: standing
SELECT CASE WHEN l.owner IS NULL THEN 0 ELSE {l.left} END,
	(SELECT count(*) FROM {queue} AS p WHERE p.name = $1 AND p.ends > {now} AND p.id < q.id)
FROM {locks} AS l JOIN {queue} AS q ON q.name = l.name
WHERE l.name = $1 AND q.owner = $2 AND q.ends > {after $3}

-- Makes the row of a lock that has none. In SQLite it begins each transaction: one that begins with reading cannot
-- always go on to write. $1 name.
-- name: make lock
INSERT INTO {locks} (name, token, ends) VALUES ($1, 0, {now}) ON CONFLICT (name) DO NOTHING

-- Locks the row, and is how long the lock is not free, its token, and its last holder. $1 name.
-- name: lock
SELECT CASE WHEN owner IS NULL THEN 0 ELSE {left} END, token, COALESCE(owner, '') FROM {locks} WHERE name = $1 {for update}

-- The head of the queue, and whether it is dead. $1 name.
-- name: first
SELECT id, owner, CASE WHEN ends <= {now} THEN 1 ELSE 0 END FROM {queue} WHERE name = $1 ORDER BY id LIMIT 1

-- Removes a waiter. $1 id.
-- name: remove
DELETE FROM {queue} WHERE id = $1

-- Makes the owner the holder. $1 name, $2 owner, $3 lease.
-- name: grant
UPDATE {locks} SET owner = $2, token = token + 1, ends = {after $3} WHERE name = $1

-- Its token. $1 name.
-- name: granted
SELECT token FROM {locks} WHERE name = $1

-- Extends the owner's place. $1 name, $2 owner, $3 wait.
-- name: stay
UPDATE {queue} SET ends = {after $3} WHERE name = $1 AND owner = $2

-- Enqueues the owner. $1 name, $2 owner, $3 wait.
-- name: enqueue
INSERT INTO {queue} (name, owner, ends) VALUES ($1, $2, {after $3})

-- Gives the owner's place up. $1 name, $2 owner.
-- name: leave
DELETE FROM {queue} WHERE name = $1 AND owner = $2

-- Semaphore. What an acquisition in MySQL and SQLite needs: the permits of all, those of the living, how long the
-- first lease of these lasts, the last token or -1, and the token and the lease of the owner. $1 name, $2 owner.
-- name: permits
SELECT COALESCE(SUM(permits), 0), COALESCE(SUM(CASE WHEN ends > {now} THEN permits ELSE 0 END), 0),
	COALESCE(MIN(CASE WHEN ends > {now} THEN {left} END), 0), COALESCE((SELECT token FROM {semaphores} WHERE name = $1), -1),
	COALESCE(MAX(CASE WHEN owner = $2 AND ends > {now} THEN token END), 0), COALESCE(MAX(CASE WHEN owner = $2 THEN {left} END), 0)
FROM {permits} WHERE name = $1

-- Makes the row of a semaphore that has none. In SQLite it begins each transaction. $1 name.
-- name: make semaphore
INSERT INTO {semaphores} (name, token) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING

-- Deletes permits whose lease is over. $1 name.
-- name: lapse
DELETE FROM {permits} WHERE name = $1 AND ends <= {now}

-- $1 name, $2 owner, $3 lease, $4 permits, $5 token.
-- name: take permits
INSERT INTO {permits} (name, owner, permits, token, ends) VALUES ($1, $2, $4, $5, {after $3})

-- $1 name.
-- name: raise token
UPDATE {semaphores} SET token = token + 1 WHERE name = $1

-- $1 name, $2 owner.
-- name: release permits
DELETE FROM {permits} WHERE name = $1 AND owner = $2

-- Gives all permits of {which} back. The arguments are names and owners.
-- name: release all permits
DELETE FROM {permits} WHERE {which}

-- The living holders. $1 name.
-- name: inspect permits
SELECT owner, permits, token, {left} FROM {permits} WHERE name = $1 AND ends > {now} ORDER BY token

-- Inspection. The holder, the token, and how long the lock is not free. $1 name.
-- name: inspect
SELECT owner, token, {left} FROM {locks} WHERE name = $1 AND owner IS NOT NULL AND ends > {now}

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
INSERT INTO {clients} (id, identity, ends) VALUES ($1, $2, {after $3})
ON CONFLICT (id) DO UPDATE SET identity = excluded.identity, ends = excluded.ends

-- name: forget
DELETE FROM {clients} WHERE ends <= {now}

package redislock

import "context"

// lockLike tells the hash of a lock with one holder from others.
const lockLike = `
local function lockLike(key)
	local pair = redis.pcall('hgetall', key)
	return not pair.err and #pair == 2 and tonumber(pair[2])
end
`

// hashForce frees the lock whoever holds it. The reply is 1, or 0 if nobody does.
//
// KEYS lock, channel; ARGV nothing, payload, publish commands
var hashForce = newScript(lockLike + `
if redis.call('exists', KEYS[1]) == 0 then
	return 0
end
if not lockLike(KEYS[1]) then
	return redis.error_reply('FOREIGN it is no lock')
end
redis.call('del', KEYS[1])
` + publish + `
return 1
`)

// KEYS lock, channel; ARGV nothing, payload, publish commands
var simpleForce = newScript(`
if not redis.call('get', KEYS[1]) then
	return 0
end
if redis.call('pttl', KEYS[1]) < 0 then
	return redis.error_reply('FOREIGN a string without a time to live is no lock')
end
redis.call('del', KEYS[1])
` + publish + `
return 1
`)

// rwForce begins the scripts of the halves of a read-write lock, which free it if it is in mode.
//
// KEYS lock, channel, prefix of all holds; ARGV nothing, payload, publish commands
func rwForce(mode string) *script {
	return newScript(`
if redis.call('exists', KEYS[1]) == 0 then
	return 0
end
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
	return redis.error_reply('FOREIGN the lock is no read-write lock')
end
if mode ~= '` + mode + `' then
	return 0
end
for _, reader in ipairs(redis.call('hkeys', KEYS[1])) do
	if reader ~= 'mode' then
		for n = 1, math.min(tonumber(redis.call('hget', KEYS[1], reader)) or 0, 10000) do
			redis.call('del', KEYS[3] .. ':' .. reader .. ':rwlock_timeout:' .. n)
		end
	end
end
redis.call('del', KEYS[1])
` + publish + `
return 1
`)
}

var readForce, writeForce = rwForce("read"), rwForce("write")

// force runs a script that frees the lock.
func (c *core) force(ctx context.Context, s *script, name, channel, beside string, payload any) (bool, error) {
	m, err := c.mode(ctx)
	if err != nil {
		return false, err
	}
	args := []any{head - 1: nil, name, channel, beside, "", payload}
	if m != sharded {
		args = append(args, "publish")
	}
	if m != classic {
		args = append(args, "spublish")
	}
	r, err := c.p.Eval(ctx, s, 3, args)
	return r == int64(1), err
}

package redislock

// The state of a simple lock: under its name a string, the owner, with the lease as time to live. That is
// what SET with NX and PX makes, and what most libraries without Redisson's format use: they are excluded, but have to poll, since
// they know no channel.

// simpleAcquire takes the lock if it is free or the owner's already. The reply is that of hashAcquire.
//
// KEYS lock; ARGV lease, owner
var simpleAcquire = newScript(`
local value = redis.call('get', KEYS[1])
if value and value ~= ARGV[2] then
	return {redis.call('pttl', KEYS[1])}
end
redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[1])
return 0
`)

// KEYS lock; ARGV owner
var simpleRecall = newScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
	return 0
end
return false
`)

// KEYS locks; ARGV lease, owners
var simpleRenew = newScript(`
local held = {}
for i, lock in ipairs(KEYS) do
	held[i] = 0
	if redis.pcall('get', lock) == ARGV[i + 1] then
		held[i] = redis.call('pexpire', lock, ARGV[1])
	end
end
return held
`)

// KEYS lock, channel; ARGV owner, payload, publish commands
var simpleRelease = newScript(`
if redis.pcall('get', KEYS[1]) ~= ARGV[1] then
	return false
end
redis.call('del', KEYS[1])
` + publish + `
return heard
`)

func newSimple(c *core) *single {
	return &single{
		c:       c,
		acquire: simpleAcquire,
		recall:  simpleRecall,
		renew:   simpleRenew,
		release: simpleRelease,
		channel: "locks_simple_channel",
		payload: wakeOne,
		force:   simpleForce,
	}
}

package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/mistake"
)

// mistakes are mistakes that the scripts could have.
var mistakes = []mistake.Mistake{
	{
		Name: "a holder ignores the holder of a string", File: "distributed/redislock/lua/simple_acquire.lua",
		Old:  "if value and value ~= ARGV[2] then",
		New:  "if false then",
		Life: "^TestLivesOfLocks$/^simple$", Seed: 6402282367383010408,
		Rule: "it gives a lock once",
	},
	{
		Name: "a release ends the hold of another acquisition", File: "distributed/redislock/lua/simple_release.lua",
		Old:  "if typed('get', KEYS[1]) ~= ARGV[1] then",
		New:  "if not typed('get', KEYS[1]) then",
		Life: "^TestLivesOfLocks$/^simple$", Seed: 17571588753994456271,
		Rule: "it gives a lock once",
	},
	{
		Name: "a plain release ends the hold of another acquisition", File: "distributed/redislock/lua/wait_release.lua",
		Old:  "if typed('hdel', KEYS[1], ARGV[1]) ~= 1 then",
		New:  "if redis.call('del', KEYS[1]) ~= 1 then",
		Life: "^TestLivesOfLocks$/^plain$", Seed: 5663952504577626126,
		Rule: "it gives a lock once",
	},
	{
		Name: "a holder that asks again is refused", File: "distributed/redislock/internal/lua/lib_look.lua",
		Old:  "if field == owner then",
		New:  "if false then",
		Life: "^TestLivesOfLocks$/^plain$", Seed: 14446255850469331695,
		Rule: "a holder that asks again has the lock",
	},
	{
		Name: "a lookup finds the hold of another acquisition", File: "distributed/redislock/lua/hash_lookup.lua",
		Old:  "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then",
		New:  "if redis.call('exists', KEYS[1]) == 0 then",
		Life: "^TestLivesOfLocks$/^plain$", Seed: 12037623380507671228,
		Rule: "Lookup finds holds only",
	},
	{
		Name: "a lock has no time to live", File: "distributed/redislock/internal/lua/lib_take.lua",
		Old:  "	redis.call('pexpire', lock, lease)\n",
		New:  "",
		Life: "^TestLivesOfLocks$/^plain$", Seed: 7816839098317006020,
		Rule: "each waiter gets its turn after everything is healed",
	},
	{
		Name: "a renewal prolongs the hold of another acquisition", File: "distributed/redislock/lua/hash_renew.lua",
		Old:  "if typed('hexists', lock, ARGV[i + 1]) == 1 then",
		New:  "if redis.call('exists', lock) == 1 then",
		Life: "^TestLivesOfLocks$/^fenced$", Seed: 4260955892259368628,
		Rule: "Renew prolongs holds only",
	},
	{
		Name: "a hold has the token of the hold before", File: "distributed/redislock/internal/lua/lib_take.lua",
		Old:  "		return now\n",
		New:  "		return tonumber(last) or now\n",
		Life: "^TestLivesOfLocks$/^fenced$", Seed: 2226169520768965069,
		Rule: "each hold has a token of its own",
	},
	{
		Name: "a fair release ends the hold of another acquisition", File: "distributed/redislock/lua/fair_release.lua",
		Old:  "typed('hdel', lock, ARGV[1])",
		New:  "redis.call('del', lock)",
		Life: "^TestLivesOfLocks$/^fair$", Seed: 322982682839122124,
		Rule: "it gives a lock once",
	},
	{
		Name: "the first waiter does not wait for the holder", File: "distributed/redislock/lua/fair_acquire.lua",
		Old:  "state == 'free' and (not head or head == owner) then",
		New:  "state == 'free' and not head or head == owner then",
		Life: "^TestLivesOfLocks$/^fair$", Seed: 322982682839122124,
		Rule: "no two holds are valid at once",
	},
	{
		Name: "a dead waiter keeps its place", File: "distributed/redislock/lua/lib_fair.lua",
		Old:  "if dies and dies > now() then",
		New:  "if dies then",
		Life: "^TestLivesOfLocks$/^fair$", Seed: 6729252145372217570,
		Rule: "each waiter gets its turn after everything is healed",
	},
	{
		Name: "a waiter that does not hear counts as alive", File: "distributed/redislock/lua/lib_fair.lua",
		Old:  "if not dies or dies > now() + rest then",
		New:  "if not dies then",
		Life: "^TestLivesOfLocks$/^fair$", Seed: 11403500936817460510,
		Rule: "each waiter gets its turn after everything is healed",
	},
}

func TestEachMistakeCanBeMade(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.CanBeMade)
	}
}

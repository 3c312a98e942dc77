package redlock_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/mistake"
)

// mistakes are mistakes that redlock could have.
var mistakes = []mistake.Mistake{
	{
		Name: "two of five servers are a majority", File: "distributed/redislock/redlock/majority.go",
		Old:  "len(nodes)/2 + 1,",
		New:  "len(nodes) / 2,",
		Life: "^TestLivesOfRedlocks$", Seed: 9100953713957084464,
		Rule: "it gives a lock once",
	},
	{
		Name: "one of five servers renews a hold", File: "distributed/redislock/redlock/inquiry.go",
		Old:  "return r.yes[k] >= r.m.quorum",
		New:  "return r.yes[k] >= 1",
		Life: "^TestLivesOfRedlocks$", Seed: 5126055179681781460,
		Rule: "it gives a lock once",
	},
	{
		Name: "one of five servers ends a hold", File: "distributed/redislock/redlock/inquiry.go",
		Old:  "return r.no[k] > len(r.m.nodes)-r.m.quorum",
		New:  "return r.no[k] > 0",
		Life: "^TestLivesOfRedlocks$", Seed: 3204310511928593884,
		Rule: "Renew finds each hold",
	},
	{
		Name: "a vote is deleted with the vote for another client", File: "distributed/redislock/redlock/lua/vote_release.lua",
		Old:  "typed('hdel', KEYS[1], ARGV[1])",
		New:  "redis.call('del', KEYS[1])",
		Life: "^TestLivesOfRedlocks$", Seed: 8080406984710248715,
		Rule: "it gives a lock once",
	},
	{
		Name: "a request without a majority keeps its votes", File: "distributed/redislock/redlock/majority.go",
		Old:  "		m.free(v, false)\n",
		New:  "",
		Life: "^TestLivesOfRedlocks$", Seed: 8605154461113016534,
		Rule: "each waiter gets its turn after everything is healed",
	},
}

func TestEachMistakeCanBeMade(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.CanBeMade)
	}
}

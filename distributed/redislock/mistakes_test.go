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
		Life: "^TestLivesOfLocks$/^simple$", Seed: 1,
		Rule: "it gives a lock once",
	},
	{
		Name: "a release ends the hold of another acquisition", File: "distributed/redislock/lua/simple_release.lua",
		Old:  "if typed('get', KEYS[1]) ~= ARGV[1] then",
		New:  "if not typed('get', KEYS[1]) then",
		Life: "^TestLivesOfLocks$/^simple$", Seed: 1,
		Rule: "it gives a lock once",
	},
}

func TestEachMistakeCanBeMade(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.CanBeMade)
	}
}

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
		Life: "^TestLivesOfRedlocks$", Seed: 1,
		Rule: "it gives a lock once",
	},
}

func TestEachMistakeCanBeMade(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.CanBeMade)
	}
}

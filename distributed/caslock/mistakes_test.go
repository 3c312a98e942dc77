package caslock_test

import (
	"testing"

	"github.com/jucgo/locks/internal/test/mistake"
)

// mistakes are mistakes that the package could have, one each.
var mistakes = []mistake.Mistake{
	{
		Name: "a document is written although a third of the lease is gone", File: "distributed/caslock/store.go",
		Old:  "case driver.Now().Sub(began) > req.TTL/3:",
		New:  "case driver.Now().Sub(began) > 100*req.TTL:",
		Life: "^TestLivesOfAPolledStore$", Seed: 16119788729519007542,
		Rule: "is taken by a request that began",
	},
	{
		Name: "the sight of a waiter is dropped too soon", File: "distributed/caslock/sights.go",
		Old:  "now.Sub(k.looked) > 2*k.longestLease()",
		New:  "true",
		Life: "^TestLivesOfAPolledStore$", Seed: 11261400795653656905,
		Rule: "later than the waiter knew",
	},
}

func TestEachMistakeCanBeMade(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.CanBeMade)
	}
}

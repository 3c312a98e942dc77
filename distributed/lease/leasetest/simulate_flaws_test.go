//go:build simulation

package leasetest

import (
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
)

// simulatedAs says how a flaw is simulated, unless its kind of store decides in no time. Some flaws
// are flaws of connections, and some are flaws of readers.
func simulatedAs(kind fakestore.Kind, flaw fakestore.Flaw) (opener, fakestore.Kind) {
	switch flaw {
	case fakestore.RefusedAfterAll, fakestore.IgnoresContext, fakestore.FailureRefuses, fakestore.RefusedEnqueue,
		fakestore.RefusedRelease, fakestore.FailureFindsNot, fakestore.FailureLoses, fakestore.FailureReleases,
		fakestore.LongTerm, fakestore.SessionStays, fakestore.SessionEnds:
		return fake, kind
	case fakestore.ReadersExclude, fakestore.ReaderIntrudes, fakestore.WriterIntrudes, fakestore.ReaderFreesAll,
		fakestore.ReaderStays, fakestore.ReaderShortens, fakestore.ReadersLapse, fakestore.ReaderWakes:
		return halved, ""
	}
	return direct, kind
}

func TestLivesFindEachFlaw(t *testing.T) {
	seen := make(map[fakestore.Flaw]bool)
	for _, m := range mutants {
		if seen[m.flaw] {
			continue
		}
		seen[m.flaw] = true
		t.Run(string(m.flaw), func(t *testing.T) {
			open, kind := simulatedAs(m.kind, m.flaw)
			began := time.Now()
			f := lives(t, World{Open: func(tb testing.TB) Config { return open(tb, m.flaw, kind) }})
			if f == nil {
				t.Fatal("nothing is found")
			}
			t.Logf("after %v: %s: %s", time.Since(began), f.rule, f.text)
		})
	}
}

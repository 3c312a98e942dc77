package caslock_test

import (
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/internal/test/effort"
)

// simulates lives up to a minute with clients that have connections to a server of documents.
func simulates(t *testing.T, config func(b bed) leasetest.Config, documents func(r *rows) caslock.Documents) {
	t.Helper()
	simulatesFor(t, time.Minute, config, documents)
}

func simulatesFor(t *testing.T, long time.Duration, config func(b bed) leasetest.Config,
	documents func(r *rows) caslock.Documents) {
	t.Helper()
	leasetest.Simulate(t, leasetest.World{
		For:  effort.Part(long),
		Open: func(tb testing.TB) leasetest.Config { return config(newBed(tb, documents)) },
	})
}

func TestLivesOfAPolledStore(t *testing.T)  { simulates(t, bed.locks, polled) }
func TestLivesOfAWatchedStore(t *testing.T) { simulates(t, bed.locks, watched) }
func TestLivesOfSemaphores(t *testing.T)    { simulates(t, bed.semaphores, polled) }

func TestLivesOfSemaphoresOfAWatchedStore(t *testing.T) { simulates(t, bed.semaphores, watched) }

// forgets simulates a server that restarts without what it has not stored: it stores its documents
// each second.
func forgets(t *testing.T, config func(b bed) leasetest.Config, documents func(r *rows) caslock.Documents) {
	t.Helper()
	simulatesFor(t, 10*time.Second, func(b bed) leasetest.Config {
		cfg := config(b)
		cfg.Forget = b.storing(time.Second)
		return cfg
	}, documents)
}

func TestLivesOfAPolledStoreThatForgets(t *testing.T)  { forgets(t, bed.locks, polled) }
func TestLivesOfAWatchedStoreThatForgets(t *testing.T) { forgets(t, bed.locks, watched) }
func TestLivesOfSemaphoresThatForget(t *testing.T)     { forgets(t, bed.semaphores, polled) }

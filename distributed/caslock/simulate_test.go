package caslock_test

import (
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// simulates lives a minute with clients that have connections to a server of documents.
func simulates(t *testing.T, config func(b bed) leasetest.Config, documents func(r *rows) caslock.Documents) {
	t.Helper()
	leasetest.Simulate(t, leasetest.World{
		For:  time.Minute,
		Open: func(tb testing.TB) leasetest.Config { return config(newBed(tb, documents)) },
	})
}

func TestLivesOfAPolledStore(t *testing.T)  { simulates(t, bed.locks, polled) }
func TestLivesOfAWatchedStore(t *testing.T) { simulates(t, bed.locks, watched) }
func TestLivesOfSemaphores(t *testing.T)    { simulates(t, bed.semaphores, polled) }

func TestLivesOfSemaphoresOfAWatchedStore(t *testing.T) { simulates(t, bed.semaphores, watched) }

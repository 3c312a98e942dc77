package adaptertest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/record"
)

var errResigned = errors.New("it has led for long enough")

// TestElection has two clients lead one after the other, with tokens that grow, and counts their
// holds. open returns the lock of a new client.
func TestElection(t *testing.T, open func() locks.Leased) {
	counters := record.New(record.Options{})
	lead := func(led chan<- uint64, until <-chan struct{}) error {
		return leader.Run(Owner(), counters.Wrap("leader", open()), func(ctx context.Context) error {
			hold, _ := locks.HoldFrom(ctx)
			led <- hold.Token()
			<-until
			return errResigned
		})
	}
	led, resign, ended := make(chan uint64), make(chan struct{}), make(chan error)
	for range 2 {
		go func() { ended <- lead(led, resign) }()
	}
	require.EqualValues(t, 1, <-led)
	resign <- struct{}{}
	require.EqualValues(t, 2, <-led, "the other client")
	require.ErrorIs(t, <-ended, errResigned)
	resign <- struct{}{}
	require.ErrorIs(t, <-ended, errResigned)
	stats := counters.Stats()
	require.Len(t, stats, 1)
	require.EqualValues(t, 2, stats[0].Holds.Count())
}

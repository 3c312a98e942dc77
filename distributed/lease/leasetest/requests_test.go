package leasetest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// oneWatch is a store that gives its only acquisition the same Watch each time.
type oneWatch struct {
	driver.Store
	open bool
	both bool   // a Watch has begun while another one was open
	then func() // is called before a Watch is answered, unless it is nil
}

func (s *oneWatch) Watch(context.Context, driver.HoldID) (driver.Watch, error) {
	s.both = s.both || s.open
	s.open = true
	if s.then != nil {
		s.then()
	}
	return s, nil
}

func (s *oneWatch) C() <-chan struct{} { return nil }

func (s *oneWatch) Close() { s.open = false }

func TestAFaultOfAWatchEndsNoOther(t *testing.T) {
	for _, f := range []leasetest.Fault{
		leasetest.LostRequest, leasetest.LostReply, leasetest.SilentRequest, leasetest.SilentReply,
		leasetest.Late, leasetest.Repeated,
	} {
		t.Run(string(f), func(t *testing.T) {
			s := &oneWatch{}
			r := leasetest.NewRequests(s)
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // ends a silence
			r.Next(leasetest.Watch, f)
			w, err := r.Watch(ctx, driver.HoldID{})
			if err != nil { // the client begins another one
				w, err = r.Watch(ctx, driver.HoldID{})
			}
			require.NoError(t, err)
			r.Deliver()
			require.True(t, s.open)
			require.False(t, s.both)
			w.Close()
		})
	}
}

func TestAWatchEndsIfItsClientHasDied(t *testing.T) {
	s := &oneWatch{}
	r := leasetest.NewRequests(s)
	s.then = r.Die
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // ends the silence
	_, err := r.Watch(ctx, driver.HoldID{})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, s.open, "nobody would close it")
}

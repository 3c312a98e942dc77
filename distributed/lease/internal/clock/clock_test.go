package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNowFollowsTheSystemsClock(t *testing.T) {
	earliest := time.Now()
	a := Now()
	latest := time.Now()
	time.Sleep(time.Millisecond)
	least := time.Since(latest)
	took := Now().Sub(a)
	most := time.Since(earliest)
	require.GreaterOrEqual(t, took, least-skew)
	require.LessOrEqual(t, took, most+skew)
	require.GreaterOrEqual(t, systemSuspended(), time.Duration(0))
}

func TestSettingTheWallClockIsNoSuspension(t *testing.T) {
	before := Suspended(time.Now())
	defer last.Store(last.Load())
	r := *last.Load()
	r.ahead += time.Hour // as if the wall clock had been set since
	last.Store(&r)
	require.Equal(t, before, Suspended(time.Now()))
	require.NotEqual(t, r.ahead, last.Load().ahead, "the system was asked")
}

func TestASuspensionIsSeenByTheWallClock(t *testing.T) {
	defer last.Store(last.Load())
	defer func(was time.Duration) { startOf = was }(startOf)
	startOf -= time.Hour // as if the machine had been suspended for an hour since the start
	require.Less(t, Suspended(time.Now()), time.Hour, "nothing was seen that would ask the system")
	r := *last.Load()
	r.ahead -= time.Hour
	last.Store(&r)
	require.GreaterOrEqual(t, Suspended(time.Now()), time.Hour-time.Second)
}

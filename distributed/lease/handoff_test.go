package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// begin is when the lock of these tests was taken.
var begin = time.Now()

// lockAt returns a grant of 40 s that was taken at begin, and the time d later. A hand-over to
// another process would take 10 ms.
func lockAt(d time.Duration) (*grant, time.Time) {
	return &grant{
		s: &schedule{base: &base{}}, taken: begin, until: begin.Add(40 * time.Second), ttl: 40 * time.Second,
		handOver: 10 * time.Millisecond,
	}, begin.Add(d)
}

func TestLocalHandoffsEndAtTheirLimit(t *testing.T) {
	var h handoff
	h.onGrant(false, false, 9)
	g, now := lockAt(time.Second)
	for range 3 {
		require.Equal(t, handOff, h.decide(g, 3, false, now))
		h.next()
	}
	require.Equal(t, toStore, h.decide(g, 3, false, now))
}

func TestHandoffsEndAfterAQuarterOfTheLease(t *testing.T) {
	var h handoff
	h.onGrant(false, false, 9)
	g, now := lockAt(10*time.Second - 1)
	require.Equal(t, handOff, h.decide(g, 3, true, now))
	require.Equal(t, toStore, h.decide(g, 3, true, now.Add(1)))
}

func TestFixedAndPinnedLocksAreNotPassed(t *testing.T) {
	var h handoff
	h.onGrant(false, false, 9)
	g, now := lockAt(0)
	g.fixed = true
	require.Equal(t, toStore, h.decide(g, 3, true, now))
	g.fixed, g.pinned = false, true
	require.Equal(t, toStore, h.decide(g, 3, true, now))
	g.pinned = false
	require.Equal(t, toStore, h.decide(g, 0, true, now), "a limit of 0")
	require.Equal(t, handOff, h.decide(g, 1, true, now))
}

func TestALockThatWasExtendedToLessThanHalfALeaseIsNotPassed(t *testing.T) {
	var h handoff
	h.onGrant(false, false, 9)
	g, now := lockAt(time.Second)
	g.until = now.Add(20*time.Second - 1)
	require.Equal(t, toStore, h.decide(g, 3, true, now))
	g.until = now.Add(20 * time.Second)
	require.Equal(t, handOff, h.decide(g, 3, true, now))
}

func TestAContendedLockGoesToEarlierWaitersOnly(t *testing.T) {
	var h handoff
	h.onGrant(true, false, 1)
	g, now := lockAt(time.Second)
	require.Equal(t, handOff, h.decide(g, 64, true, now))
	h.next()
	require.Equal(t, toStore, h.decide(g, 64, true, now))
	g, now = lockAt(9 * time.Millisecond)
	require.Equal(t, handOff, h.decide(g, 64, true, now), "sooner than others could have it")
}

func TestAProbeExtendsUncontendedTurns(t *testing.T) {
	var h handoff
	h.onGrant(false, false, 9)
	g, now := lockAt(time.Second)
	h.next()
	require.Equal(t, probe, h.decide(g, 1, true, now))
	h.next()
	require.Equal(t, handOff, h.decide(g, 1, true, now.Add(maxProbe-1)), "the probe is under way")
	require.Equal(t, toStore, h.decide(g, 1, true, now.Add(maxProbe)), "it takes too long")
	h.onProbe(true, true)
	require.Equal(t, handOff, h.decide(g, 1, true, now))
	h.next()
	h.next()
	require.Equal(t, probe, h.decide(g, 1, true, now))
	h.onProbe(true, false)
	require.Equal(t, toStore, h.decide(g, 1, true, now), "others wait")
}

func TestAProbeOfAnEarlierLockSaysNothing(t *testing.T) {
	var h handoff
	h.onGrant(false, false, 9)
	g, now := lockAt(time.Second)
	h.next()
	require.Equal(t, probe, h.decide(g, 1, true, now))
	h.onGrant(false, false, 9)
	h.next()
	h.onProbe(false, false)
	require.Equal(t, probe, h.decide(g, 1, true, now))
}

func TestAYieldedLockIsNotProbed(t *testing.T) {
	var h handoff
	h.onGrant(false, true, 9)
	g, now := lockAt(time.Second)
	h.next()
	require.Equal(t, toStore, h.decide(g, 1, true, now))
}

func TestTheNextLocalOwnerYieldsOnce(t *testing.T) {
	var h handoff
	h.onRelease(begin, time.Second, true)
	require.Equal(t, 600*time.Millisecond, h.takeYield(begin.Add(400*time.Millisecond)))
	require.Zero(t, h.takeYield(begin.Add(500*time.Millisecond)))
	h.onRelease(begin, time.Second, true)
	require.Zero(t, h.takeYield(begin.Add(2*time.Second)), "others have had their time")
}

func TestAnOvertakenWaiterElsewhereMakesTheLockContended(t *testing.T) {
	var h handoff
	h.onRelease(begin, time.Second, false) // others wait, and nobody here to yield
	require.Zero(t, h.takeYield(begin))
	h.onGrant(false, false, 0)
	g, now := lockAt(time.Second)
	require.Equal(t, toStore, h.decide(g, 64, false, now))
	h.onRelease(begin, 0, false)
	h.onGrant(false, false, 0)
	require.Equal(t, handOff, h.decide(g, 64, false, now), "that is over")
}

package sqllock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

func deaf(context.Context, string, func(), func(string)) error { return nil }

// asked returns how often w lets a waiter ask within d. It calls answer each time.
func asked(w *watch, d time.Duration, answer func()) (n int) {
	over := time.After(d)
	for {
		select {
		case <-w.C():
			n++
			answer()
		case <-over:
			return n
		}
	}
}

func TestAWaiterForAKeptLockAsksRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(newOptions(nil), "", false, func() {})
		defer w.Close()
		same := func() { w.onRefusal(7) }
		require.Positive(t, asked(w, DefaultMinBackoff, same), "at once")
		first := asked(w, 25*time.Millisecond, same)
		require.True(t, 4 <= first && first <= 10, first)
		usual := asked(w, 500*time.Millisecond, same)
		require.True(t, 30 <= usual && usual <= 63, usual)
		asked(w, 10*time.Second, same)
		late := asked(w, 10*time.Second, same)
		require.True(t, 100 <= late && late <= 201, late)
	})
}

func TestAnOvertakenWaiterAsksMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(newOptions(nil), "", false, func() {})
		defer w.Close()
		holder := int64(0)
		same := func() { w.onRefusal(holder) }
		asked(w, 20*time.Second, same)
		holder++ // the holder that the waiter saw first
		asked(w, 100*time.Millisecond, same)
		n := 0
		for i := range 15 {
			holder++
			if got := asked(w, 100*time.Millisecond, same); i >= 10 {
				n += got
			}
		}
		require.True(t, 62 < n && n <= 126, n)
		asked(w, 20*time.Second, same)
		n = asked(w, time.Second, same)
		require.LessOrEqual(t, n, 21, "the last one keeps it")
	})
}

func TestAnOvertakenPatientWaiterAsksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(newOptions([]Option{WithBackoff(DefaultMinBackoff, 10*time.Second)}), "", false, func() {})
		defer w.Close()
		w.onRefusal(1)
		asked(w, time.Hour, func() { w.onRefusal(1) })
		<-w.C() // it pauses for 5 seconds at least now, if it is told nothing
		w.onRefusal(2)
		require.Positive(t, asked(w, 20*time.Millisecond, func() { w.onRefusal(2) }))
	})
}

func TestAWaiterAloneAsksNoMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(newOptions(nil), "", false, func() {})
		defer w.Close()
		asked(w, 20*time.Second, func() {}) // an answer does not tell
		require.LessOrEqual(t, asked(w, time.Second, func() {}), 21)
		// The first holder that it is told of has perhaps had the lock all the time.
		require.LessOrEqual(t, asked(w, time.Second, func() { w.onRefusal(1) }), 21)
	})
}

func TestANotifiedWaiterAsksNoMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(newOptions([]Option{WithListener(deaf)}), "", false, func() {})
		defer w.Close()
		holder := int64(0)
		another := func() { holder++; w.onRefusal(holder) }
		asked(w, time.Minute, another)
		require.LessOrEqual(t, asked(w, time.Minute, another), 25)
		w.onNotice()
		require.Positive(t, asked(w, time.Millisecond, another))
	})
}

func TestANotifiedWaiterAsksOnceAndThenRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(newOptions([]Option{WithListener(deaf)}), "me", true, func() {})
		defer w.Close()
		w.onNotice()
		require.Equal(t, 1, asked(w, DefaultMaxBackoff/2, func() {}))
		require.Equal(t, 1, asked(w, DefaultMaxBackoff/2, func() {}))
	})
}

func TestAWaiterAsksLaterOnAnothersTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(newOptions([]Option{WithListener(deaf)}), "me", true, func() {})
		defer w.Close()
		for range 1000 { // the lock changes hands
			time.Sleep(DefaultMaxBackoff / 10)
			w.onTurn("another")
		}
		require.Empty(t, w.C())
		require.Positive(t, asked(w, DefaultMaxBackoff, func() {}), "another one does not take its turn")
		w.onTurn("me")
		require.Positive(t, asked(w, time.Millisecond, func() {}))
	})
}

func TestAClosedWatchIsToldNothing(t *testing.T) {
	c := &core{options: options{min: time.Hour, max: time.Hour}}
	w := c.watch(driver.HoldID{Name: "it"}).(*watch)
	c.onRefusal("it", 1)
	c.onRefusal("other", 2)
	require.Equal(t, []int64{1}, c.told("it"))
	w.Close()
	require.Empty(t, c.told("it"))
	require.Empty(t, c.waiters.watches)
	w.Close()
}

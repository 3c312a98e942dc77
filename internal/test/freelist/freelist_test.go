package freelist

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aba runs the schedule that breaks a list which compares slots only. The list is A, B, C. One
// party is stopped in the middle of taking A, having seen that B is behind it. Meanwhile the other
// one takes A and B and puts A back: the list is A, C. Then the first goes on. aba returns the
// slots of each of them in the end, and the slots that the list hands out after that.
func aba(t *testing.T, l List, step *Step) (first, other int, rest []int) {
	stopped, goOn := make(chan struct{}), make(chan struct{})
	var halted atomic.Bool
	*step = func(int, int) {
		if !halted.Swap(true) { // no sync.Once, for which the other party would wait
			close(stopped)
			<-goOn
		}
	}
	got := make(chan int)
	go func() {
		slot, ok := l.Get()
		if !ok {
			t.Error("nothing is free")
		}
		got <- slot
	}()
	<-stopped
	a, ok := l.Get()
	require.True(t, ok)
	b, ok := l.Get()
	require.True(t, ok)
	require.Equal(t, [2]int{0, 1}, [2]int{a, b})
	l.Put(a)
	close(goOn)
	first, other = <-got, b
	for range 10 { // a corrupt list can go round in circles
		slot, ok := l.Get()
		if !ok {
			break
		}
		rest = append(rest, slot)
	}
	return first, other, rest
}

func TestPlainListReturnsASlotTwiceAfterABA(t *testing.T) {
	l := NewPlain(3)
	first, other, rest := aba(t, l, &l.Step)
	require.Equal(t, 0, first)
	require.Equal(t, 1, other)
	require.Equal(t, []int{1, 2}, rest, "slot 1 was handed out while it was in use")
}

func TestTheStampSavesTheListFromABA(t *testing.T) {
	l := NewStamped(3)
	first, other, rest := aba(t, l, &l.Step)
	require.Equal(t, 0, first)
	require.Equal(t, 1, other)
	require.Equal(t, []int{2}, rest)
}

// In the middle of each Get another goroutine makes any calls, and a third one in the middle of its
// Gets.
func TestNoScheduleBreaksTheStampedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots = 3
		l := NewStamped(slots)
		used := map[int]bool{}
		depth := 0
		act := func() {
			if rapid.Bool().Draw(t, "get") {
				if slot, ok := l.Get(); ok {
					require.False(t, used[slot], "slot %d is in use", slot)
					used[slot] = true
				}
				return
			}
			for slot := range slots {
				if used[slot] && rapid.Bool().Draw(t, "put") {
					delete(used, slot)
					l.Put(slot)
				}
			}
		}
		l.Step = func(int, int) {
			if depth++; depth <= 3 {
				for range rapid.IntRange(0, 4).Draw(t, "meanwhile") {
					act()
				}
			}
			depth--
		}
		for range 20 {
			act()
		}
		l.Step = nil
		for {
			slot, ok := l.Get()
			if !ok {
				break
			}
			require.False(t, used[slot])
			used[slot] = true
		}
		require.Len(t, used, slots, "none is lost")
	})
}

func TestSlotOfTheStampedListHasOneUser(t *testing.T) {
	const slots, parties, each = 3, 6, 5_000
	l := NewStamped(slots)
	var users [slots]atomic.Int32
	var wg sync.WaitGroup
	for range parties {
		wg.Go(func() {
			for range each {
				slot, ok := l.Get()
				if !ok {
					continue
				}
				if users[slot].Add(1) != 1 {
					t.Errorf("slot %d has two users", slot)
				}
				users[slot].Add(-1)
				l.Put(slot)
			}
		})
	}
	wg.Wait()
	for range slots {
		_, ok := l.Get()
		require.True(t, ok)
	}
	_, ok := l.Get()
	require.False(t, ok)
}

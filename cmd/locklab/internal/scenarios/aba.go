package scenarios

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/internal/test/freelist"
)

var _ = register(lab.Scenario{
	Lesson:   130,
	Name:     "aba",
	Topic:    "Without a lock",
	Title:    "ABA: the same value is not the same state",
	Question: "What does compare-and-swap not notice?",
	Claim: `Compare-and-swap has three operands: a location, the expected value, and the new one. It checks whether
the value is the one that was read, not whether it was so all the time. If the value changed from A to B
and back to A, the swap succeeds, although conclusions from the first A may be wrong by now.

A version in front tells the values apart: 1A, 2B, 3A.`,
	Look: `Two goroutines share a list of free slots. One is stopped while it takes slot A, after it has read that
B is next. The other one takes A and B, and puts A back. In the first picture the stopped goroutine then
makes B the head of the list, although B is in use. In the second the stamp has changed, and it reads
again.`,
	Found: `The plain list handed out slot {{.twice}} twice. The stamped list, under the same schedule,
handed out no slot twice: the swap failed {{times .retries}}, and was tried again.`,
	Take: "Go's collector does not reuse memory while a pointer to it exists, so pointers to new nodes are " +
		"safe: `cas.Stack` relies on that. If the program reuses memory itself, in a pool or by index, " +
		"use `cas.Packed` or `cas.Stamped`.",
	Java: `AtomicStampedReference<Node> head = ...;
int[] stamp = new int[1];
Node first = head.get(stamp);
head.compareAndSet(first, first.next, stamp[0], stamp[0] + 1);`,
	Run: aba,
})

//lab:show

// popPlain takes the first slot of a list. next may be in use by the time of the swap.
func popPlain(head *atomic.Uint32, next []atomic.Uint32) uint32 {
	for {
		first := head.Load()
		second := next[first].Load()
		if head.CompareAndSwap(first, second) {
			return first
		}
	}
}

// popStamped notices a head that was changed and changed back.
func popStamped(head *cas.Packed, next []atomic.Uint32) uint32 {
	for {
		first, stamp := head.Load()
		second := next[first].Load()
		if head.CompareAndSwap(first, second, stamp, stamp+1) {
			return first
		}
	}
}

//lab:end

func aba(_ context.Context, l *lab.Lab) error {
	plain := freelist.NewPlain(3)
	twice, looks := abaSchedule(l, "With a plain compare-and-swap", "The stopped goroutine does not notice "+
		"that the list has changed.", plain, &plain.Step)
	l.Equal([]string{"B"}, twice, "a plain compare-and-swap lets a slot be handed out while it is in use")
	l.Equal(1, looks, "the plain swap succeeds at the first try")
	stamped := freelist.NewStamped(3)
	none, looks := abaSchedule(l, "With a stamp", "The stamp has changed: the swap fails, and the "+
		"goroutine looks again.", stamped, &stamped.Step)
	l.Equal([]string(nil), none, "with a stamp no slot is handed out while it is in use")
	l.Equal(2, looks, "the stamped swap fails, and is tried again")
	l.Observe("retries", looks-1)
	l.Observe("twice", fmt.Sprint(twice)[1:2])

	// The lines that are shown, on a list of two.
	var head atomic.Uint32
	var packed cas.Packed
	next := make([]atomic.Uint32, 2)
	next[0].Store(1)
	l.Equal(uint32(0), popPlain(&head, next), "undisturbed, the plain list gives its first slot")
	l.Equal(uint32(0), popStamped(&packed, next), "undisturbed, the stamped list gives its first slot")
	_, stamp := packed.Load()
	l.Equal(uint32(1), stamp, "every change changes the stamp")
	return nil
}

// abaSchedule runs the schedule that breaks a list without stamps. It returns the slots that
// were handed out while in use, and how often the stopped goroutine looked at the head.
func abaSchedule(l *lab.Lab, title, desc string, list freelist.List, step *freelist.Step) (twice []string,
	looks int) {
	t := l.Timeline(title, desc)
	stopped, goOn := make(chan struct{}), make(chan struct{})
	name := func(slot int) string { return string(rune('A' + slot)) }
	used := map[string]bool{}
	got := func(slot int) string {
		s := name(slot)
		if used[s] {
			twice = append(twice, s)
		}
		used[s] = true
		return s
	}
	var slow *lab.Lane
	who := locks.Owner(0)
	*step = func(first, next int) {
		if locks.CurrentOwner(nil) != who {
			return
		}
		me := slow
		looks++
		me.Mark("reads the head: %s, then %s", name(first), name(next))
		if looks == 1 {
			me.Is(lab.Waiting, "is stopped between its read and its swap", func() {
				close(stopped)
				<-goOn
			})
		}
	}
	finished := make(chan struct{})
	t.Go("stopped", func(_ context.Context, me *lab.Lane) error {
		defer close(finished)
		me.Work(time.Millisecond)
		slow, who = me, locks.CurrentOwner(nil)
		slot, _ := list.Get()
		me.Mark("has %s", got(slot))
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Go("other", func(_ context.Context, me *lab.Lane) error {
		<-stopped
		me.Work(time.Millisecond)
		a, _ := list.Get()
		me.Mark("takes %s", got(a))
		me.Work(time.Millisecond)
		b, _ := list.Get()
		me.Mark("takes %s", got(b))
		me.Work(time.Millisecond)
		delete(used, name(a))
		list.Put(a)
		me.Mark("puts %s back", name(a))
		me.Work(time.Millisecond)
		close(goOn)
		<-finished
		me.Work(time.Millisecond)
		if c, ok := list.Get(); ok {
			me.Mark("takes %s", got(c))
		}
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Wait()
	return twice, looks
}

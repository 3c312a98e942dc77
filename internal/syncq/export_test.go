package syncq

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks/internal/park"
)

// Verify returns what is wrong with s. Nobody uses s at the moment: all parties are parked or gone.
// The word must be a legal one, and must agree with the queue and the read table.
func (s *ReadWrite) Verify() error {
	s.guard.Lock()
	defer s.guard.Unlock()
	if err := s.verifyWord(); err != nil {
		return err
	}
	if err := s.verifyTable(s.Word.Load()); err != nil {
		return err
	}
	return s.queue.verify()
}

// verifyWord checks Q, F, N, W, S, and O of advance. The guard is held.
func (s *ReadWrite) verifyWord() error {
	w, first := s.Word.Load(), s.queue.head
	switch {
	case (w&flagQueued != 0) != (first != nil) || (first != nil) != (s.queue.len > 0):
		return fmt.Errorf("word %#x with %d in the queue", w, s.queue.len)
	case w&flagWoken != 0 && (first == nil || first.state != awake || first.reserved):
		return fmt.Errorf("word %#x has woken, but the first waiter is %+v", w, first)
	case (w&flagReserved != 0) != (first != nil && first.reserved):
		return fmt.Errorf("word %#x disagrees about its reservation with the first waiter %+v", w, first)
	case free(w) && first != nil && w&flagWoken == 0:
		return fmt.Errorf("word %#x is free, and the first waiter sleeps", w)
	case first != nil && first.shared && !exclusive(w):
		return fmt.Errorf("word %#x keeps no reader out, but one is the first waiter", w)
	case w&flagShared != 0 && first != nil && first.state == waiting && !first.reserved && s.Policy() == NonFair:
		return fmt.Errorf("word %#x has readers, and is not reserved for the first waiter, which sleeps", w)
	}
	return nil
}

// verifyTable checks T of advance. The guard is held.
func (s *ReadWrite) verifyTable(w uint64) error {
	t := s.table.Load()
	under, counted := t.readers()
	switch {
	case w&flagBiased != 0 && (w&flagVisible == 0 || w&flagQueued != 0):
		return fmt.Errorf("word %#x is biased without the table's hold, or with waiters", w)
	case w&flagVisible != 0 && (w&flagShared == 0 || t == nil):
		return fmt.Errorf("word %#x has a hold of the table, but no table, or is not shared", w)
	case under > 0 && w&flagVisible == 0:
		return fmt.Errorf("word %#x has no hold for the %d readers under the table's", w, under)
	case counted > s.Shared()-s.TakenByTable():
		return fmt.Errorf("word %#x has not enough holds for %d counted readers", w, counted)
	case w&(flagVisible|flagBiased) == flagVisible && under == 0:
		return fmt.Errorf("word %#x has a hold for an empty table, and no reader gives it back", w)
	case s.covered.load() > 0 && s.Owner() == 0:
		return fmt.Errorf("word %#x has no exclusive holder, but %d holds are its shared ones", w, s.covered.load())
	}
	return nil
}

// readers returns how many readers of t have their hold under the table's, and how many are counted
// in the word.
func (t *readTable) readers() (under, counted int) {
	see := func(o int64) {
		if o > 0 {
			under++
		} else if o < 0 {
			counted++
		}
	}
	if t == nil {
		return 0, 0
	}
	see(-t.firstReader.load())
	for i := range t.slots {
		b := &t.slots[i]
		see(b.owner.Load())
		for o := range b.others {
			see(o)
		}
	}
	return under, counted
}

// Under returns how many readers have their hold under the table's.
func (s *ReadWrite) Under() int {
	under, _ := s.table.Load().readers()
	return under
}

// verify checks that l is a doubly linked list of sleeping waiters without anything left over.
func (l *list) verify() error {
	var prev *node
	k := 0
	for n := l.head; n != nil; prev, n = n, n.next {
		k++
		if n.in != l || n != l.head && n.prev != prev || n.state != waiting || n.visit != nil || n.wake != nil {
			return fmt.Errorf("node %d of the queue is not in order: %+v", k, n)
		}
	}
	if k != int(l.len) || prev != l.tail {
		return fmt.Errorf("queue of %d has %d nodes", l.len, k)
	}
	return nil
}

// ReadCount returns how many shared holds goroutines have.
func (s *ReadWrite) ReadCount() (n int) {
	s.EachReader(func(_ int64, holds int) { n += holds })
	_, own := s.WriterReads()
	return n + own
}

// Idle reports whether no party holds the lock. The bias to readers may be left.
func (s *ReadWrite) Idle() bool {
	w := s.Word.Load()
	return free(w) || w&^allFlags == oneHold && w&flagVisible != 0 && s.table.Load().empty()
}

// ReadBiased biases the lock to readers, if possible, and takes a shared hold for o.
func (s *ReadWrite) ReadBiased(o int64) bool {
	if s.TryLockShared() {
		s.bias()
		s.UnlockShared()
	}
	return s.Read(Owned(o))
}

// Revoke ends the bias to readers.
func (s *ReadWrite) Revoke() {
	s.guard.Lock()
	wake, _ := s.advance(revoke)
	s.guard.Unlock()
	unpark(wake)
}

// TakenByTable is 1 if one of the shared holds in the word is the read table's, and else 0.
func (s *ReadWrite) TakenByTable() int {
	if s.Word.Load()&flagVisible != 0 {
		return 1
	}
	return 0
}

// leave gives back slot b of a reader under the table's hold, as a lock does.
func (s *ReadWrite) leave(b *Slot) {
	if b.Free(); !s.Biased() {
		s.ReadersLeft()
	}
}

// The forms of an acquisition, as tests call them.

func (s *ReadWrite) Lock(p Party) bool { return s.Acquire(p, nil) == Acquired }

func (s *ReadWrite) LockFor(p Party, d time.Duration) bool {
	return s.Acquire(p, park.After(d)) == Acquired
}

func (s *ReadWrite) LockContext(ctx context.Context, p Party) Outcome {
	return s.Acquire(p, park.Until(ctx))
}

func (s *ReadWrite) LockShared(p Party) bool {
	return s.AcquireShared(p, nil) == Acquired
}

func (s *ReadWrite) LockSharedFor(p Party, d time.Duration) bool {
	return s.AcquireShared(p, park.After(d)) == Acquired
}

func (s *ReadWrite) LockSharedContext(ctx context.Context, p Party) Outcome {
	return s.AcquireShared(p, park.Until(ctx))
}

func (s *ReadWrite) Read(p Party) bool { return s.AcquireRead(p, nil) == Acquired }

func (s *ReadWrite) ReadFor(p Party, d time.Duration) bool {
	return s.AcquireRead(p, park.After(d)) == Acquired
}

func (s *ReadWrite) ReadContext(ctx context.Context, p Party) Outcome {
	return s.AcquireRead(p, park.Until(ctx))
}

func (c *Cond) WaitFor(p Party, d time.Duration) bool { return c.Wait(p, park.After(d)) }

func (c *Cond) WaitContext(ctx context.Context, p Party) bool { return c.Wait(p, park.Until(ctx)) }

// join is enqueue for a test that plays the waiter. The guard is free on return.
func (s *ReadWrite) join(n *node) bool {
	queued, guard := n.enqueue()
	if guard != nil {
		guard.Unlock()
	}
	return queued
}

package lockstest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func readersAreCounted(s *suite) {
	a, other := s.party(), s.party()
	var readers []context.Context
	most := beyondWord
	if s.cfg.Leased { // a store may need longer for each reader if there are many
		most = beyondByte
	}
	n := s.often(a, 64, most, "LockContext of a reader while others are inside", func(int) error {
		ctx := s.ctx
		if s.cfg.Owned {
			ctx = locks.WithOwner(s.ctx, locks.NewOwner())
		}
		readers = append(readers, ctx)
		return s.l.LockContext(ctx)
	})
	for i := 0; i < n; i += 32 {
		ok, err := other.try(s.x, s.ctx)
		require.NoError(s, err)
		require.False(s, ok, "a writer is inside with %d readers", n-i)
		c := a.do("UnlockContext of a reader", func(c *call) {
			for _, ctx := range readers[i:min(i+32, n)] {
				if c.err = s.l.UnlockContext(ctx); c.err != nil {
					return
				}
			}
		})
		require.NoError(s, c.err, "a reader of %d", n)
	}
	s.mustBeFree("all readers have left")
}

func viewsApart(s *suite) {
	a := s.party()
	for _, pair := range [][2]locks.TryLocker{{s.x, s.l}, {s.l, s.x}} {
		a.mustLock(pair[0])
		require.ErrorIs(s, a.unlock(pair[1], s.ctx), locks.ErrNotHeld, "the hold is of the other view")
		s.mustBeHeld("only a hold of the other view was released")
		a.mustUnlock(pair[0])
		s.mustBeFree("it was released")
	}
}

// downgrade makes a writer acquire the read view before it releases the write view, if the lock
// can do so.
func downgrade(s *suite) {
	a, b, c := s.party(), s.party(), s.party()
	a.mustLock(s.x)
	ok, err := a.try(s.l, s.ctx)
	if !ok || err != nil {
		a.mustUnlock(s.x)
		s.Log("a writer cannot read, and need not be able to")
		return
	}
	writer := b.startLock(s.x, s.ctx)
	s.mustWait(writer, s.x, 1)
	a.mustUnlock(s.x)
	s.mustStillWait(writer, "the former writer still reads")
	ok, err = c.try(s.x, s.ctx)
	require.NoError(s, err)
	require.False(s, ok, "the former writer still reads")
	a.mustUnlock(s.l)
	s.await(writer, "LockContext of a writer")
	require.NoError(s, writer.err)
	b.mustUnlock(s.x)
	s.mustBeFree("all have released it")
}

// cancelledWriter lets readers come while a writer waits, and after the writer has left.
func cancelledWriter(s *suite) {
	a, b, c, d := s.party(), s.party(), s.party(), s.party()
	a.mustLock(s.l)
	ctx, cancel := context.WithCancel(s.ctx)
	writer := b.startLock(s.x, ctx)
	s.mustWait(writer, s.x, 1)
	behind := c.startLock(s.l, s.ctx) // may wait for the writer, or not
	cancel()
	s.await(writer, "LockContext of a writer whose ctx was cancelled")
	require.ErrorIs(s, writer.err, context.Canceled)
	s.await(behind, "LockContext of a reader behind a cancelled writer")
	require.NoError(s, behind.err)
	after := d.startLock(s.l, s.ctx)
	s.await(after, "LockContext of a reader after a cancelled writer")
	require.NoError(s, after.err)
	for _, p := range []*party{a, c, d} {
		p.mustUnlock(s.l)
	}
	s.mustBeFree("all have released it")
}

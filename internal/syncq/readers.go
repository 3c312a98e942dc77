package syncq

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// This file has shared holds that belong to an owner, and that cost nobody else anything: visible
// readers, after BRAVO (Dice and Kogan, USENIX ATC 2019), with the owner's slot as its hold
// count.
//
// Readers of a lock are in a table, each in the bucket that its owner hashes to. All of them together
// have one shared hold in the word, the table's, for which visible stands. While biased is
// set, a newcomer only has to be in the table to read, and a reader only has to be out of it to
// have left; neither changes the word. All other shared holds in the word are those of readers between their
// admission by the queue and their entry in the table (settleIn).
//
//	visible biased
//	0       0       nobody is in the table, but those about to find that they may not read
//	1       1       whoever is in the table reads; nobody waits
//	1       0       whoever was in the table as biased was cleared reads; the last one out
//	                gives the table's hold back
//
// Who may change them: both are set on a word that shows neither, by anybody, or with the guard held;
// biased is cleared by anybody; visible is cleared with the guard held, without biased, and
// with the table found empty after that.
//
// No reader is missed: it enters the table before it looks for biased, and whoever takes the
// table's hold away clears biased before it looks into the table. One of them sees the other.
// A reader that finds biased gone leaves the table again, and goes to the queue. Nor
// can the table's hold be given back for an earlier look into the table, with a new reader
// admitted since: visible, without biased, stays as it is while the guard is held.
//
// No writer is forgotten: the word has biased cleared when a writer joins the queue, at the latest
// in that very step, and the writer looks into the table after that. If it finds somebody there, that one
// finds biased gone when it leaves, and looks as well. Whoever is the last sees an empty
// table.
//
// The exclusive holder's own shared holds are in no table: nobody else can have any. They are
// in Sync.covered, and go to the table when it gives the exclusive ones back.

// readers is the table.
type readers struct {
	buckets []Bucket
	shift   uint8

	// counted says how many goroutines of an explicit owner were let in by another one that are on their way to
	// settleIn, and whose holds are counted already. Guarded by the lock's guard.
	counted map[int64]int
}

// Bucket is where the readers of one hash are. Its exported methods are what a lock's fast paths
// are made of; they are for a goroutine.
type Bucket struct {
	owner atomic.Int64 // the goroutine that has the slot, or 0
	holds count        // of it, beyond the first

	// Those who found the slot taken, and explicit owners, which may read in several
	// goroutines at once.
	crowd  atomic.Int32 // how many they are
	mu     sync.Mutex
	others map[int64]int // their holds; guarded by mu

	_ [32]byte // a cache line to each
}

// newReaders returns a table for as many readers as can run at once, with room to
// spare. More share buckets.
func newReaders() *readers {
	n, bits := 4, uint8(2)
	for procs := runtime.GOMAXPROCS(0); n < 4*procs && n < 64; n *= 2 {
		bits++
	}
	return &readers{buckets: make([]Bucket, n), shift: 64 - bits}
}

// bucket returns o's. Ids that follow each other, as those of a group of workers do, lie
// far apart (Fibonacci hashing, Knuth, TAOCP 6.4).
func (t *readers) bucket(o int64) *Bucket {
	return &t.buckets[uint64(o)*0x9E3779B97F4A7C15>>(t.shift&63)]
}

func (t *readers) empty() bool {
	for i := range t.buckets {
		if b := &t.buckets[i]; b.owner.Load() != 0 || b.crowd.Load() != 0 {
			return false
		}
	}
	return true
}

func (s *Sync) table() *readers {
	if t := s.readers.Load(); t != nil {
		return t
	}
	s.readers.CompareAndSwap(nil, newReaders())
	return s.readers.Load()
}

// enter puts o in the table with one hold, or counts one more if another goroutine of the explicit
// owner o has put it there.
func (b *Bucket) enter(o int64) (first bool) {
	if b.takeSlot(o) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.join(o)
}

func (b *Bucket) takeSlot(o int64) bool { return !explicit(o) && b.owner.CompareAndSwap(0, o) }

// join is enter for who has not got the slot. b.mu is held.
func (b *Bucket) join(o int64) (first bool) {
	if b.others == nil {
		b.others = make(map[int64]int)
	}
	if b.others[o]++; b.others[o] > 1 {
		return false
	}
	b.crowd.Add(1)
	return true
}

// quit takes n holds of o, which has as many at least, from the others. b.mu is held.
func (b *Bucket) quit(o int64, n int) {
	if b.others[o] -= n; b.others[o] == 0 {
		delete(b.others, o)
		b.crowd.Add(-1)
	}
}

// reenter counts one more hold of o if it is in the table.
func (b *Bucket) reenter(o int64) (held, counted bool) {
	if b.owner.Load() == o {
		h := b.holds.own()
		if h == MaxHolds-1 {
			return true, false
		}
		b.holds.set(h + 1)
		return true, true
	}
	if b.crowd.Load() == 0 {
		return false, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.others[o]
	if h == 0 || h >= MaxHolds {
		return h != 0, false
	}
	b.others[o]++
	return true, true
}

// exit takes one hold of o out of the table, or all, and reports how many it had.
func (b *Bucket) exit(o int64, all bool) (had int) {
	if b.owner.Load() == o {
		h := b.holds.own()
		if h > 0 && !all {
			b.holds.set(h - 1)
		} else {
			b.holds.set(0)
			b.owner.Store(0)
		}
		return int(h) + 1
	}
	if b.crowd.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	had = b.others[o]
	switch {
	case had == 0:
	case all:
		b.quit(o, had)
	default:
		b.quit(o, 1)
	}
	return had
}

// holdsOf returns how many holds o has, to o itself.
func (b *Bucket) holdsOf(o int64) int {
	if b.owner.Load() == o {
		return int(b.holds.own()) + 1
	}
	if b.crowd.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.others[o]
}

// Bucket returns where o is if it reads, or nil if nobody has read so far.
func (s *Sync) Bucket(o int64) *Bucket {
	if t := s.readers.Load(); t != nil {
		return t.bucket(o)
	}
	return nil
}

// Biased reports whether a reader that is in the table reads.
func (s *Sync) Biased() bool { return s.Word.Load()&biased != 0 }

// Has reports whether me has the slot of b.
func (b *Bucket) Has(me int64) bool { return b.owner.Load() == me }

// Reenter counts one more hold of the goroutine that has the slot, unless it has too many.
func (b *Bucket) Reenter() bool {
	h := b.holds.own()
	if h == MaxHolds-1 {
		return false
	}
	b.holds.set(h + 1)
	return true
}

// Enter takes the slot for me, who reads then if the lock is biased afterwards, and else has to
// [Bucket.Exit]. It fails if others use b.
func (b *Bucket) Enter(me int64) bool {
	return b.crowd.Load() == 0 && b.owner.CompareAndSwap(0, me)
}

// Leave gives back a hold of the goroutine that has the slot, if it has more than one.
func (b *Bucket) Leave() bool {
	h := b.holds.own()
	if h == 0 {
		return false
	}
	b.holds.set(h - 1)
	return true
}

// Exit gives back the slot of b, and with it the last hold of its goroutine. The lock has to be told
// ([Sync.Left]) if it is not biased after that.
func (b *Bucket) Exit() { b.owner.Store(0) }

// ReenterRead counts one more shared hold of o if it has one, or holds the lock exclusively. It
// reports whether it does, and whether the hold could be counted.
func (s *Sync) ReenterRead(o int64) (held, counted bool) {
	if explicit(o) {
		s.guard.Lock()
		defer s.guard.Unlock()
	}
	if s.HeldBy(o) {
		h := s.covered.own()
		if h == MaxHolds {
			return true, false
		}
		s.covered.set(h + 1)
		return true, true
	}
	if t := s.readers.Load(); t != nil {
		return t.bucket(o).reenter(o)
	}
	return false, false
}

// Unread gives one shared hold of o back. It reports false, and does nothing, if o has none.
func (s *Sync) Unread(o int64, policy Policy) bool {
	had := s.unread(o)
	if had == 1 {
		s.Left(policy)
	}
	return had > 0
}

func (s *Sync) unread(o int64) (had int) {
	if explicit(o) {
		s.guard.Lock()
		defer s.guard.Unlock()
	}
	if s.HeldBy(o) {
		h := s.covered.own()
		if h > 0 {
			s.covered.set(h - 1)
		}
		return int(h)
	}
	if t := s.readers.Load(); t != nil {
		return t.bucket(o).exit(o, false)
	}
	return 0
}

// TryRead takes a shared hold for o, which had none when it was last looked at, unless the lock
// is held exclusively. It barges.
func (s *Sync) TryRead(o int64, policy Policy) bool {
	if s.readBiased(o, policy) {
		return true
	}
	if !s.TryLockShared() {
		return false
	}
	s.settleIn(o, policy)
	return true
}

// Read takes a shared hold for o, which had none when it was last looked at, and waits for it
// if need be. It reports false only if the wait was refused.
func (s *Sync) Read(o int64, policy Policy) bool {
	if s.readBiased(o, policy) {
		return true
	}
	if !s.LockShared(o, policy) {
		return false
	}
	s.settleIn(o, policy)
	return true
}

// ReadFor is Read for at most d, and reports whether the hold was taken.
func (s *Sync) ReadFor(o int64, policy Policy, d time.Duration) bool {
	if s.readBiased(o, policy) {
		return true
	}
	if !s.LockSharedFor(o, policy, d) {
		return false
	}
	s.settleIn(o, policy)
	return true
}

// ReadContext is Read until ctx ends, and reports whether the hold was taken. The caller has looked
// at ctx first.
func (s *Sync) ReadContext(ctx context.Context, o int64, policy Policy) bool {
	if s.readBiased(o, policy) {
		return true
	}
	if !s.LockSharedContext(ctx, o, policy) {
		return false
	}
	s.settleIn(o, policy)
	return true
}

// readBiased takes a shared hold for o over the table if the lock is biased to readers, or is free.
func (s *Sync) readBiased(o int64, policy Policy) bool {
	if w := s.Word.Load(); w != 0 && w&biased == 0 {
		return false
	}
	b := s.table().bucket(o)
	if b.takeSlot(o) {
		if s.confirm() {
			return true
		}
		b.owner.Store(0)
	} else {
		// In one go, lest another goroutine of the explicit owner o finds a hold here
		// that is not one yet.
		b.mu.Lock()
		ok := !b.join(o) || s.confirm()
		if !ok {
			b.quit(o, 1)
		}
		b.mu.Unlock()
		if ok {
			return true
		}
	}
	s.Left(policy)
	return false
}

// confirm reports whether somebody who has just entered the table may read.
func (s *Sync) confirm() bool {
	for {
		switch w := s.Word.Load(); {
		case w&biased != 0:
			return true
		case w != 0:
			return false
		case s.Word.CompareAndSwap(0, one|shared|visible|biased):
			return true
		}
	}
}

// settleIn puts o, which has a shared hold in the word, in the table instead. In one go with the
// guard held: another goroutine of the explicit owner o must not find a hold in the table that the word does
// not know as one of the table's, to give it back or to upgrade it.
func (s *Sync) settleIn(o int64, policy Policy) {
	s.guard.Lock()
	next := s.settle(o, policy)
	s.guard.Unlock()
	unpark(next)
	if explicit(o) {
		s.siblings(o)
	}
}

// settle is settleIn with the guard held, and returns whom to unpark.
func (s *Sync) settle(o int64, policy Policy) *node {
	t := s.table()
	if explicit(o) && t.counted[o] > 0 {
		// If o has a hold in the word as well, the goroutine that this one was counted for will settle that.
		t.discount(o)
		return nil
	}
	if !t.bucket(o).enter(o) {
		return s.release(policy, 0)
	}
	for {
		w := s.Word.Load()
		to := w | visible // o's hold becomes the table's,
		if w&visible != 0 {
			to = w - one // which the table has already
		}
		if w&queued == 0 {
			to |= biased
		}
		if s.Word.CompareAndSwap(w, to) {
			return nil
		}
	}
}

// share counts one more shared hold of the explicit owner o, for a goroutine that has asked for one and will call settleIn.
// It reports whether it could: if o has a hold, and not too many. The guard is held.
func (s *Sync) share(o int64) bool {
	if s.HeldBy(o) {
		h := s.covered.own()
		if h == MaxHolds {
			return false
		}
		s.covered.set(h + 1)
	} else if t := s.readers.Load(); t == nil {
		return false
	} else if _, counted := t.bucket(o).reenter(o); !counted {
		return false
	}
	t := s.table()
	if t.counted == nil {
		t.counted = make(map[int64]int)
	}
	t.counted[o]++
	return true
}

// discount takes back one of those of o that are counted. The lock's guard is held.
func (t *readers) discount(o int64) {
	if t.counted[o]--; t.counted[o] == 0 {
		delete(t.counted, o)
	}
}

// Left gives the table's hold back if that is due: when somebody has left the table, or
// has begun to wait.
func (s *Sync) Left(policy Policy) {
	if s.Word.Load()&(visible|biased) != visible || !s.readers.Load().empty() {
		return // whoever is in the table will look as it leaves
	}
	s.guard.Lock()
	next := s.vacate(policy)
	s.guard.Unlock()
	unpark(next)
}

// vacate gives the table's hold back if nobody reads over it or may come to, and returns whom to
// unpark. The guard is held.
func (s *Sync) vacate(policy Policy) *node {
	if s.Word.Load()&(visible|biased) != visible || !s.readers.Load().empty() {
		return nil
	}
	return s.release(policy, visible)
}

// Seize takes a lock exclusively that is biased to readers, but that nobody reads.
func (s *Sync) Seize(p Party) bool {
	if s.Word.Load()&biased == 0 || !s.readers.Load().empty() {
		return false
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	const unread = one | shared | visible
	return s.Word.CompareAndSwap(unread|biased, unread) && s.readers.Load().empty() &&
		s.Word.CompareAndSwap(unread, p.value)
}

// Revoke ends the bias to readers, for somebody who is about to ask for the lock exclusively.
func (s *Sync) Revoke(policy Policy) {
	for {
		w := s.Word.Load()
		if w&biased == 0 {
			break
		}
		if s.Word.CompareAndSwap(w, w&^biased) {
			break
		}
	}
	s.Left(policy)
}

// Idle reports whether nobody holds the lock, though it may be biased to readers.
func (s *Sync) Idle() bool {
	w := s.Word.Load()
	return free(w) || w&visible != 0 && w>>shift == 1 && s.readers.Load().empty()
}

// LeaveWrite gives one exclusive hold of o back. With the last, the lock goes to whom the policy
// says, or, if o has shared holds as well, it is shared from then on, with no
// exclusive holder in between. It reports false, and does nothing, if o has none.
func (s *Sync) LeaveWrite(o int64, policy Policy) bool {
	if !explicit(o) {
		switch {
		case !s.HeldBy(o):
			return false
		case s.Holds > 0:
			s.Holds--
			return true
		case s.covered.own() == 0:
			return s.Unlock(policy)
		}
	}
	s.guard.Lock()
	held := s.HeldBy(o)
	var next *node
	switch {
	case !held:
	case s.Holds > 0:
		s.Holds--
	case s.covered.own() > 0:
		next = s.uncoverAll(o)
	default:
		next = s.release(policy, 0)
	}
	s.guard.Unlock()
	unpark(next)
	return held
}

// DowngradeWrite turns one of o's exclusive holds into a shared one, as LeaveWrite does with the last. It
// reports whether o has one, and whether the shared hold could be counted; if not, nothing happens.
func (s *Sync) DowngradeWrite(o int64) (held, counted bool) {
	s.guard.Lock()
	held, counted, next := s.downgradeWrite(o)
	s.guard.Unlock()
	unpark(next)
	return held, counted
}

func (s *Sync) downgradeWrite(o int64) (held, counted bool, next *node) {
	if !s.HeldBy(o) {
		return false, false, nil
	}
	h := s.covered.own()
	if h == MaxHolds {
		return true, false, nil
	}
	s.covered.set(h + 1)
	if s.Holds > 0 {
		s.Holds--
		return true, true, nil
	}
	return true, true, s.uncoverAll(o)
}

// uncoverAll moves o's shared holds to the table, gives up its exclusive one, and returns whom to unpark.
// The guard is held.
func (s *Sync) uncoverAll(o int64) *node {
	b := s.table().bucket(o)
	holds := s.covered.own()
	s.covered.set(0)
	if b.takeSlot(o) {
		b.holds.set(holds - 1)
	} else {
		b.mu.Lock()
		b.join(o)
		b.others[o] += int(holds) - 1
		b.mu.Unlock()
	}
	for {
		w := s.Word.Load()
		to := w&(queued|woken) | one | shared | visible
		if w&queued == 0 {
			to |= biased
		}
		if s.Word.CompareAndSwap(w, to) {
			return s.extend()
		}
	}
}

// Upgrade turns one of o's shared holds into an exclusive one if nobody else has any, past
// whoever waits. The others of o stay what they are.
func (s *Sync) Upgrade(o int64) (upgraded, reads bool) {
	s.guard.Lock()
	upgraded, reads = s.upgrade(o)
	s.guard.Unlock()
	if upgraded && explicit(o) {
		s.siblings(o)
	}
	return upgraded, reads
}

// upgrade is Upgrade with the guard held.
func (s *Sync) upgrade(o int64) (upgraded, reads bool) {
	if s.HeldBy(o) {
		h := s.covered.own()
		if h == 0 || s.Holds >= MaxHolds-1 {
			return false, h != 0
		}
		s.covered.set(h - 1)
		s.Holds++
		return true, true
	}
	t := s.readers.Load()
	if t == nil {
		return false, false
	}
	b := t.bucket(o)
	if b.holdsOf(o) == 0 {
		return false, false
	}
	for {
		w := s.Word.Load()
		if w>>shift != 1 {
			return false, true
		}
		if !s.Word.CompareAndSwap(w, w&^biased) {
			continue
		}
		w &^= biased
		if !t.only(o) {
			if w&queued == 0 {
				s.Word.CompareAndSwap(w, w|biased)
			}
			return false, true
		}
		if s.Word.CompareAndSwap(w, value(o)|w&(queued|woken|handoff)) {
			// With those that another goroutine of an explicit owner has taken meanwhile.
			s.covered.set(uint32(max(b.exit(o, true), 1) - 1))
			return true, true
		}
	}
}

// only reports whether nobody but o is in the table, where it is.
func (t *readers) only(o int64) bool {
	n := 0
	for i := range t.buckets {
		b := &t.buckets[i]
		if b.owner.Load() != 0 {
			n++
		}
		n += int(b.crowd.Load())
	}
	return n == 1
}

// LeaveOrUnlockWrite gives one exclusive hold of owner back, if it has the lock and, with the last
// hold, nobody waits, and it has no shared ones. Else it does nothing.
func (s *Sync) LeaveOrUnlockWrite(owner int64) bool {
	return s.covered.load() == 0 && s.LeaveOrUnlock(owner)
}

// ReadHolds returns how many shared holds o has, to o itself.
func (s *Sync) ReadHolds(o int64) int {
	if s.HeldBy(o) {
		return int(s.covered.load())
	}
	if t := s.readers.Load(); t != nil {
		return t.bucket(o).holdsOf(o)
	}
	return 0
}

// WriteHolds returns how many exclusive holds o has, to o itself.
func (s *Sync) WriteHolds(o int64) int {
	if !s.HeldBy(o) {
		return 0
	}
	return int(min(s.Holds+1, math.MaxInt))
}

// ReadCount returns how many shared holds there are, of everybody, or the greatest int if they are more. Several owners
// together can have more than fit an int of 32 bits.
func (s *Sync) ReadCount() int {
	n := int64(s.covered.load())
	s.eachReader(func(_ int64, holds int) { n += int64(holds) })
	return int(min(n, math.MaxInt))
}

// Readers returns who has shared holds, in no order.
func (s *Sync) Readers() (who []int64) {
	if s.covered.load() > 0 {
		if o := s.Owner(); o != 0 {
			who = append(who, o)
		}
	}
	s.eachReader(func(o int64, _ int) { who = append(who, o) })
	return who
}

func (s *Sync) eachReader(visit func(o int64, holds int)) {
	t := s.readers.Load()
	if t == nil {
		return
	}
	for i := range t.buckets {
		b := &t.buckets[i]
		if o := b.owner.Load(); o != 0 {
			visit(o, int(b.holds.load())+1)
		}
		if b.crowd.Load() == 0 {
			continue
		}
		b.mu.Lock()
		for o, holds := range b.others {
			visit(o, holds)
		}
		b.mu.Unlock()
	}
}

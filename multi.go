package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/internal/burst"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/joined"
	"github.com/jucgo/locks/internal/keytext"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/unheld"
)

// keyed is implemented by locks with a name that orders them in every process. See [Multi].
type keyed interface {
	// LockKey returns the name of the lock, a zero byte, and a text. The text tells the lock
	// apart from other locks of this name, for example by its store. The zero byte and the text
	// may be missing. An empty result means that the lock has no key.
	LockKey() string
}

// sameLock is implemented by locks whose key does not say whether two of them are one lock.
type sameLock interface {
	// SameLock reports whether other, which has the same key, is this lock. It may ask the store,
	// but not under a ctx that has ended.
	SameLock(ctx context.Context, other TryLocker) (bool, error)
}

// Multi returns a lock that holds all of ls or none of them. Java has no such type. Redisson's
// twin is RedissonMultiLock.
//
// LockContext acquires the locks one after the other. The order is the same for every Multi.
// Therefore two Multis over the same locks cannot deadlock, however they list them:
//
//   - Locks with a method LockKey() string that does not return "" come first, by the name in the
//     key: its text up to the first zero byte. A lock must have the same name in every process.
//     Distributed locks have this method, and their name is the lock's name in the store.
//   - Other pointers, channels and maps follow, by address.
//   - Some locks have no order: two locks with the same name, such as the locks of one name on
//     two servers; two [Leased] locks without a key; a lock whose key begins with a zero byte;
//     and values without an address, such as a struct.
//
// If two members have no order, LockContext waits for one member while it holds no other, and
// then tries the others. If a try fails, it releases all members and pauses for a random time.
// Then it waits for the member that was missing. The pause is at most 5 ms or 16 times as long as
// the tries took, and never more than 2 s. Such a Multi cannot deadlock either. It tries the
// members by their whole keys, so several processes usually begin with the same member.
//
// Two values of one type are the same lock if their keys are equal. If the type has a method
// SameLock(context.Context, TryLocker) (bool, error), the method decides about equal keys. Two
// clients of one store have different locks of one name, which exclude each other. A Multi of
// both can never be acquired. The acquisition returns [ErrDeadlock] if SameLock finds this out
// while one of the two is held.
//
// A wrapper with a method Unwrap() TryLocker has the place of the lock inside, and counts as the
// same lock. The wrappers of package record have this method. A wrapper around a Multi hides its
// members: wrap the members instead.
//
// A hold that the caller already has of one of ls is outside of this order, and can deadlock. A
// lock that is listed twice, by key or by address and type, is acquired once. A Multi in ls
// counts as its members. Every owner acquires an empty Multi at once. Multi panics if one of ls
// is nil.
//
// If a member fails, the members acquired before are released in reverse order, even if ctx has
// ended. The error names the member and matches the member's error. It does not tell of a member
// that was lost before this release. TryLockContext waits for no member. UnlockContext releases in
// reverse order. It tries every member, joins their errors, and ends the hold even if there are
// errors.
//
// A hold belongs to its [Owner], even if the members know no owners, and to the Multi that
// acquired it. UnlockContext by another owner, or of another Multi, is [ErrNotHeld] and releases
// nothing. A Multi is reentrant if all its members are.
//
// If a member is [Leased], so is the Multi. Its hold is lost when the first hold of a member is
// lost. Err returns the first error found. Token returns 0, because every resource needs the
// token of the member that guards it. Deadline returns the earliest deadline. Extend extends
// every hold and joins the errors.
func Multi(ls ...TryLocker) TryLocker {
	m := &multi{ordered: true}
	for i, l := range ls {
		switch l := l.(type) {
		case *multi:
			m.add(l.members...)
		case *leasedMulti:
			m.add(l.members...)
		default:
			m.add(newMember(i, l))
		}
	}
	// A stable sort keeps the arguments' order of members without an order.
	slices.SortStableFunc(m.members, compareMembers)
	for i, each := range m.members {
		if each.rank == unordered && len(m.members) > 1 {
			m.ordered = false
		}
		if slices.ContainsFunc(m.members[:i], each.ties) {
			m.ordered, m.ties = false, true
		}
		if l, ok := each.lock.(Leased); ok {
			m.leased = append(m.leased, l)
		}
	}
	if len(m.leased) > 0 {
		return &leasedMulti{m}
	}
	return m
}

const (
	byKey = iota
	byAddress
	unordered
)

// member is one lock of a Multi with its place in the order of all locks.
type member struct {
	lock     TryLocker
	inner    TryLocker // what lock wraps, or lock itself
	which    any       // which lock it is: inner, or what FromSync got
	rank     int       // byKey, byAddress or unordered
	key      string    // or ""
	label    string    // the name in key
	address  uintptr
	typeName string
	name     string // for errors
}

func newMember(i int, l TryLocker) member {
	if l == nil {
		panic(fmt.Sprintf("locks: Multi: member %d is nil", i))
	}
	if ctxerr.IsNil(l) {
		panic(fmt.Sprintf("locks: Multi: member %d is a nil %T", i, l))
	}
	inner := innermost(l)
	var which any = inner
	if adapter, ok := inner.(*fromSync); ok {
		which = adapter.l // all adapters of a lock have its place
	}
	address, typeName, reference := identity(which)
	each := member{
		lock: l, inner: inner, which: which, typeName: typeName, name: fmt.Sprintf("member %d (%T)", i, l),
	}
	if k, ok := inner.(keyed); ok && k.LockKey() != "" {
		each.rank, each.key = byKey, k.LockKey()
		label, rest, _ := strings.Cut(each.key, "\x00")
		each.label = label
		shown := label
		if label == "" {
			each.rank = unordered
			shown, _, _ = strings.Cut(rest, "\x00")
		}
		each.name = fmt.Sprintf("member %d (%T %q)", i, l, shown)
	} else if reference {
		if sched.On {
			address = sched.Address(address) // the next run has other addresses
		}
		each.rank, each.address = byAddress, address
	} else {
		each.rank = unordered
	}
	return each
}

// innermost unwraps l until it finds a lock that wraps no other.
func innermost(l TryLocker) TryLocker {
	for {
		w, ok := l.(interface{ Unwrap() TryLocker })
		if !ok {
			return l
		}
		next := w.Unwrap()
		if next == nil {
			return l
		}
		l = next
	}
}

// compareMembers orders by rank, then by key or address. The views of one lock may have the same
// key or address, and differ in type.
func compareMembers(a, b member) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(a.key, b.key),
		cmp.Compare(a.address, b.address),
		cmp.Compare(a.typeName, b.typeName),
	)
}

// is reports whether a and b are the same lock.
func (a member) is(b member) bool {
	if a.rank == unordered && a.key == "" {
		return same(a.which, b.which)
	}
	if compareMembers(a, b) != 0 || !sameType(a.inner, b.inner) {
		return false
	}
	s, ok := a.inner.(sameLock)
	if !ok || a.key == "" {
		return true
	}
	same, err := s.SameLock(ended, b.inner)
	return same && err == nil
}

// ended is a context under which no store is asked.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// ties reports whether a and b have no order that is the same in every process. The text behind a
// name gives no such order, because two processes may spell one store in two ways. An address
// gives no such order if other processes share both locks.
func (a member) ties(b member) bool {
	switch {
	case a.rank == byKey && b.rank == byKey:
		return a.label == b.label
	case a.rank == byAddress && b.rank == byAddress:
		return isLeased(a.inner) && isLeased(b.inner)
	}
	return false
}

func isLeased(l TryLocker) bool {
	_, ok := l.(Leased)
	return ok
}

// multi is a Multi without leased members.
type multi struct {
	members []member // distinct, in the order of acquisition
	leased  []Leased
	ordered bool          // every member has its place in an order
	ties    bool          // two members may be one lock, see selfish
	refused atomic.Uint32 // how often a member was not free while another one was held, if there are ties

	// word is the Owner of the only hold, so that the everyday case does not need mu. The legal
	// states while mu is free:
	//
	//	word      counts      the holds
	//	0         none        none
	//	an owner  none        one of this owner, for which Hold was not called
	//	counted   at least 1  those in the counts
	//
	// Therefore an owner never has holds in the word and in the counts at once. The steps:
	//
	//   - From 0 to an owner, and back, by CompareAndSwap and without mu. The owner's goroutines
	//     do this after they have acquired the members, and before they release them.
	//   - From 0 or an owner to counted, with mu held. The owner's hold becomes a count before mu
	//     is free again.
	//   - From counted to 0, with mu held, when the last count ends.
	//
	// UnlockContext and Hold look into the counts if their CompareAndSwap from the owner fails. If
	// the owner lacks a count, ErrNotHeld is right, because the owner was without a hold at one
	// moment of this call:
	//
	//   - If the word was 0 or another owner, that moment is the CompareAndSwap.
	//   - If the word was counted, the owner had a count or no hold. A count that is gone when mu
	//     is acquired has ended in between.
	word atomic.Int64

	mu     sync.Mutex // guards all below
	first  multiCount // of one owner, or zero; mostly there is no other
	others map[Owner]*multiCount
	peak   burst.Peak // of others
}

// counted is the word of a multi that has its holds in the counts. An Owner has 58 bits, and so
// never has this value.
const counted = math.MinInt64

// multiCount is how often an owner holds a Multi.
type multiCount struct {
	owner Owner
	holds int
	hold  *multiHold // nil until Hold is called
}

func (m *multi) add(more ...member) {
	for _, each := range more {
		if !slices.ContainsFunc(m.members, each.is) {
			m.members = append(m.members, each)
		}
	}
}

func (m *multi) LockContext(ctx context.Context) (err error) {
	if err := ctxerr.Check("locks: Multi: LockContext", ctx); err != nil {
		return err
	}
	// A ctx of the caller's own type may panic, so its owner is asked for before a member is taken.
	o := CurrentOwner(ctx)
	defer func() { err = ctxerr.Explain(ctx, err) }() // once no member is held
	if !m.ordered {
		return m.lockByTrying(ctxerr.Quiet(ctx), o)
	}
	return m.lockInOrder(ctxerr.Quiet(ctx), o)
}

// lockInOrder is LockContext if the members have an order.
func (m *multi) lockInOrder(ctx context.Context, o Owner) (err error) {
	// A wait for a member begins while all members before it are held.
	taken := 0
	// Deferred, because a member that panics must not leave the others locked.
	defer func() {
		if taken < len(m.members) {
			err = joined.Errors(err, m.rollBack(ctx, o, m.members[:taken]))
		}
	}()
	for i := range m.members {
		each := &m.members[i]
		if err := each.lock.LockContext(ctx); err != nil {
			return each.wrap("lock", err)
		}
		taken++
	}
	m.addHold(o)
	return nil
}

// The pauses of lockByTrying are random, so that two callers that hold each other's missing
// member do not collide for ever. The actual wait, for the missing member, is in lockFrom. If the
// tries take long, as with remote stores, the pauses grow to a multiple of the time of the tries.
// With shorter pauses, the tries of both callers would overlap each time.
const (
	firstPause   = 20 * time.Microsecond
	longestPause = 5 * time.Millisecond // or spread times as long as the tries
	spread       = 16
	mostPause    = 2 * time.Second
)

// lockByTrying is LockContext if the members have no order: it waits for a member while it holds
// none.
func (m *multi) lockByTrying(ctx context.Context, o Owner) error {
	missing := 0
	for pause := firstPause; ; pause *= 2 {
		next, took, err := m.lockFrom(ctx, o, missing)
		if err != nil {
			return err
		}
		if next < 0 {
			m.addHold(o)
			return nil
		}
		missing = next
		if sched.On && sched.Explored() {
			sched.Begin("Pause", m) // the scheduler decides how long it is
			if err := ctxerr.Check("locks: Multi: LockContext", ctx); err != nil {
				return err
			}
			continue
		}
		pause = min(max(pause, took), max(longestPause, spread*took), mostPause)
		timer := time.NewTimer(rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctxerr.Check("locks: Multi: LockContext", ctx)
		}
	}
}

// lockFrom waits for the member with the index first, and tries all others. It returns the index
// of the member that was not free, or -1 if all are held. If it released the members again, took
// is the time for which it held the first member.
func (m *multi) lockFrom(ctx context.Context, o Owner, first int) (missing int, took time.Duration, err error) {
	var taken []member
	var began time.Time
	defer func() {
		if len(taken) < len(m.members) {
			err = joined.Errors(err, m.rollBack(ctx, o, taken))
			took = time.Since(began)
		}
	}()
	if err := m.members[first].lock.LockContext(ctx); err != nil {
		return first, 0, m.members[first].wrap("lock", err)
	}
	began = time.Now()
	taken = append(taken, m.members[first])
	for i, each := range m.members {
		if i == first {
			continue
		}
		if ok, err := each.lock.TryLockContext(ctx); err != nil {
			return i, 0, each.wrap("try", err)
		} else if !ok {
			return i, 0, m.selfish(ctx, each, taken)
		}
		taken = append(taken, each)
	}
	return -1, 0, nil
}

// selfish returns an error if each is the same lock as a member in taken. A try has failed to
// acquire each. Two clients of one store make two members of one lock. To ask the store seldom,
// selfish does so only at the first refusal of this Multi, the second, the fourth, and so on.
func (m *multi) selfish(ctx context.Context, each member, taken []member) error {
	if !m.ties || !slices.ContainsFunc(taken, each.ties) {
		return nil
	}
	if n := m.refused.Add(1); n&(n-1) != 0 {
		return nil
	}
	for _, other := range taken {
		s, ok := each.inner.(sameLock)
		if !ok || !each.ties(other) {
			continue
		}
		// An error of SameLock is ignored: the next round asks the member itself.
		if same, err := s.SameLock(ctx, other.inner); same && err == nil {
			err := fmt.Errorf("%w: it is the same lock as %s, which is held", ErrDeadlock, other.name)
			return each.wrap("try", err)
		}
	}
	return nil
}

func (m *multi) TryLockContext(ctx context.Context) (ok bool, err error) {
	if err := ctxerr.Check("locks: Multi: TryLockContext", ctx); err != nil {
		return false, err
	}
	o := CurrentOwner(ctx)
	defer func() { err = ctxerr.Explain(ctx, err) }()
	return m.tryInOrder(ctxerr.Quiet(ctx), o)
}

// tryInOrder is TryLockContext for o.
func (m *multi) tryInOrder(ctx context.Context, o Owner) (ok bool, err error) {
	taken := 0
	defer func() {
		if taken < len(m.members) {
			err = joined.Errors(err, m.rollBack(ctx, o, m.members[:taken]))
		}
	}()
	for i := range m.members {
		each := &m.members[i]
		if ok, err := each.lock.TryLockContext(ctx); err != nil {
			return false, each.wrap("try", err)
		} else if !ok {
			return false, m.selfish(ctx, *each, m.members[:taken])
		}
		taken++
	}
	m.addHold(o)
	return true, nil
}

// rollBack releases the members that a failed acquisition by o has acquired. It ignores the end
// of ctx, which may be the reason of the failure. The members find o without asking ctx. A member
// that was lost in the meantime is not held any more, so its loss does not count as a failure.
func (m *multi) rollBack(ctx context.Context, o Owner, taken []member) error {
	return release(WithOwner(context.WithoutCancel(ctx), o), taken, true)
}

// release releases all of taken in reverse order. A panic becomes an error, because the Context
// family does not panic. A member that panics or calls Goexit does not leave the others locked:
// they are released in the deferred call. In a roll-back, release ignores losses.
func release(ctx context.Context, taken []member, rollBack bool) (err error) {
	left := len(taken) // counts a member down when its unlock has returned
	defer func() {
		if left == 0 {
			return
		}
		left--
		if p := recover(); p != nil { // else Goexit
			err = joined.Errors(err, taken[left].wrap("panic in unlock of", keytext.Panic(p)))
		}
		if rest := release(ctx, taken[:left], rollBack); rest != nil {
			err = joined.Errors(err, rest)
		}
	}()
	for ; left > 0; left-- {
		each := &taken[left-1]
		if failed := each.lock.UnlockContext(ctx); failed != nil && !(rollBack && errors.Is(failed, ErrLost)) {
			err = joined.Errors(err, each.wrap("unlock", failed))
		}
	}
	return err
}

func (each *member) wrap(verb string, err error) error {
	return ctxerr.Wrap("locks: Multi: "+verb+" "+each.name, err)
}

// count returns the count of o, or nil if o has no hold. m.mu is held.
func (m *multi) count(o Owner) *multiCount {
	switch {
	case m.first.owner == o:
		return &m.first
	case m.others == nil:
		return nil
	}
	return m.others[o]
}

// addHold notes one more hold of o, which has acquired all members.
func (m *multi) addHold(o Owner) {
	if !m.word.CompareAndSwap(0, int64(o)) {
		m.countHold(o)
	}
}

// countHold is addHold if the word does not suffice.
func (m *multi) countHold(o Owner) {
	m.mu.Lock()
	if was := m.word.Swap(counted); was != 0 && was != counted {
		m.first = multiCount{owner: Owner(was), holds: 1}
	}
	c := m.count(o)
	switch {
	case c != nil:
	case m.first.owner == 0:
		c = &m.first
		c.owner = o
	default:
		if m.others == nil {
			m.others = make(map[Owner]*multiCount)
		}
		c = &multiCount{owner: o}
		m.others[o] = c
		m.peak.Grew(len(m.others))
	}
	c.holds++
	m.mu.Unlock()
}

// dropHold ends one hold of o, and reports whether there was one.
func (m *multi) dropHold(o Owner) bool {
	return m.word.CompareAndSwap(int64(o), 0) || m.uncountHold(o)
}

// uncountHold is dropHold if the word does not name o. With the last hold of o it ends the Hold.
func (m *multi) uncountHold(o Owner) bool {
	m.mu.Lock()
	c := m.count(o)
	if c == nil {
		m.mu.Unlock()
		return false
	}
	var ended *multiHold
	if c.holds--; c.holds == 0 {
		ended = c.hold
		if c == &m.first {
			m.first = multiCount{}
		} else {
			delete(m.others, o)
		}
		if m.peak.IsOver(len(m.others)) {
			m.others = nil
		}
		if m.first.owner == 0 && len(m.others) == 0 {
			m.word.Store(0)
		}
	}
	m.mu.Unlock()
	if ended != nil {
		ended.end()
	}
	return true
}

// notHeld returns the error of o, which has no hold of this Multi.
func (m *multi) notHeld(o Owner) error {
	var owners []Owner
	m.mu.Lock()
	if w := m.word.Load(); w != 0 && w != counted {
		owners = append(owners, Owner(w))
	}
	if m.first.owner != 0 {
		owners = append(owners, m.first.owner)
	}
	owners = slices.AppendSeq(owners, maps.Keys(m.others))
	m.mu.Unlock()
	if len(owners) == 0 {
		return unheld.Free("this Multi")
	}
	slices.Sort(owners)
	return unheld.By(o, "this Multi is held by", "", owners...)
}

func (m *multi) UnlockContext(ctx context.Context) error {
	o := CurrentOwner(ctx)
	if !m.dropHold(o) {
		return ctxerr.Wrap("locks: Multi: UnlockContext", m.notHeld(o))
	}
	return release(ctx, m.members, false)
}

// Unwrap returns the members, in the order of acquisition.
func (m *multi) Unwrap() []TryLocker {
	members := make([]TryLocker, len(m.members))
	for i, each := range m.members {
		members[i] = each.lock
	}
	return members
}

// String describes the members.
func (m *multi) String() string {
	s := "locks.Multi["
	for i, each := range m.members {
		if i > 0 {
			s += ", "
		}
		s += each.name
	}
	return s + "]"
}

// leasedMulti is a Multi of which some members are leased.
type leasedMulti struct{ *multi }

var _ Leased = (*leasedMulti)(nil)

func (m *leasedMulti) Hold(ctx context.Context) (Hold, error) {
	o := CurrentOwner(ctx)
	m.mu.Lock()
	if m.word.CompareAndSwap(int64(o), counted) {
		m.first = multiCount{owner: o, holds: 1}
	}
	c := m.count(o)
	if c == nil {
		m.mu.Unlock()
		return nil, ctxerr.Wrap("locks: Multi: Hold", m.notHeld(o))
	}
	if c.hold == nil {
		c.hold = &multiHold{over: make(chan struct{})}
	}
	h := c.hold
	m.mu.Unlock()
	if err := h.gather(ctx, m.leased); err != nil {
		return nil, err
	}
	return h, nil
}

// multiHold is one owner's hold of a Multi: the Hold of all leased members at once.
type multiHold struct {
	mu      sync.Mutex
	members []Hold         // nil until the first Hold
	over    chan struct{}  // closed by the last release
	lost    chan struct{}  // nil until the first Lost
	once    sync.Once      // closes lost
	watch   sync.WaitGroup // the goroutines that watch the members
}

// gather asks the members for their holds, once. It holds no mutex meanwhile, because ctx and the
// members may be types of the program. A member gives all goroutines of the owner the same hold.
func (h *multiHold) gather(ctx context.Context, leased []Leased) error {
	h.mu.Lock()
	gathered := h.members != nil
	h.mu.Unlock()
	if gathered {
		return nil
	}
	members := make([]Hold, 0, len(leased))
	for _, l := range leased {
		hold, err := l.Hold(ctx)
		if err != nil {
			return fmt.Errorf("locks: Multi: Hold: %w", err)
		}
		members = append(members, hold)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.members == nil {
		h.members = members
	}
	return nil
}

// Lost starts one goroutine for each member, which the last release ends.
func (h *multiHold) Lost() <-chan struct{} {
	channels := make([]<-chan struct{}, len(h.members))
	for i, each := range h.members { // without the mutex: a member may be a type of the program
		channels[i] = each.Lost()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return h.lost
	}
	h.lost = make(chan struct{})
	for _, lost := range channels {
		if isClosed(lost) {
			h.once.Do(func() { close(h.lost) })
		}
		if isClosed(h.over) {
			continue
		}
		h.watch.Go(func() {
			select {
			case <-lost:
				h.once.Do(func() { close(h.lost) })
			case <-h.over:
			}
		})
	}
	return h.lost
}

func (h *multiHold) end() {
	h.mu.Lock()
	close(h.over)
	h.mu.Unlock()
	h.watch.Wait()
}

func (h *multiHold) Err() error {
	for _, each := range h.members {
		if err := each.Err(); err != nil {
			h.tell(each)
			return err
		}
	}
	return nil
}

// tell closes the channel of Lost if member is lost. Otherwise the caller of Err could learn of the
// loss before the goroutine that watches member.
func (h *multiHold) tell(member Hold) {
	h.mu.Lock()
	lost := h.lost
	h.mu.Unlock()
	if lost != nil && isClosed(member.Lost()) {
		h.once.Do(func() { close(lost) })
	}
}

func (h *multiHold) Token() uint64 { return 0 }

func (h *multiHold) Deadline() (deadline time.Time, ok bool) {
	for _, each := range h.members {
		if d, has := each.Deadline(); has && (!ok || d.Before(deadline)) {
			deadline, ok = d, true
		}
	}
	return deadline, ok
}

func (h *multiHold) Extend(ctx context.Context, d time.Duration) error {
	if isClosed(h.over) {
		return fmt.Errorf("locks: Multi: Extend of a hold that was released: %w", ErrLost)
	}
	var errs []error
	for _, each := range h.members {
		errs = append(errs, each.Extend(ctx, d))
	}
	return joined.Errors(errs...)
}

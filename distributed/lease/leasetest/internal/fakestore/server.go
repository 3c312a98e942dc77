package fakestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// placeTerm is how long a place in a queue lasts if its waiter does not ask again. It is longer
// than the poll interval of the tests.
const placeTerm = 5 * time.Second

// Server keeps locks by its own monotonic clock. It is safe for concurrent use.
type Server struct {
	flaw     Flaw
	began    time.Time
	listener net.Listener

	mu         sync.Mutex
	ahead      time.Duration // of the clock, by SetClock
	restarts   int
	stored     *image // or nil, see Forget
	locks      map[string]*lock
	identities map[string]string // by client
	tokens     uint64
	clients    int
	asked      int               // acquisitions so far
	requests   map[uint64]func() // the requests that clients send over the network, by number
	serial     uint64
	held       int // requests for held locks so far
	releases   int
	conns      map[net.Conn]bool
	jobs       sync.WaitGroup
}

// lock is one lock, which is guarded by Server.mu.
type lock struct {
	foreign bool // something else is under the name
	holds   []*hold
	queue   []*place
	watches []*watch // the oldest first
	past    map[string]bool
	broken  map[string]bool
	notices int
	lapsed  *hold  // the last hold that lapsed, until the next one
	refused string // the last acquisition that was refused
}

type hold struct {
	acquisition string
	client      *client
	shared      bool
	permits     int64
	token       uint64
	lease       time.Duration
	ends        time.Duration // by the server's clock
	session     *session      // ends the hold, or nil
	count       int
	failed      bool // see ReleaseFailsOnce
	renewals    int
}

type place struct {
	acquisition string
	client      *client
	session     *session
	ends        time.Duration
}

// session lasts until its client is silent for its term, or the server restarts.
type session struct {
	term     time.Duration
	ends     time.Duration
	restarts int // of the server before the session
	ended    bool
	losses   []driver.HoldID // not told to the client yet
	alarm    chan struct{}   // has an element if there are losses
}

// loses notes a loss for the client of the session.
func (x *session) loses(id driver.HoldID) {
	x.losses = append(x.losses, id)
	select {
	case x.alarm <- struct{}{}:
	default:
	}
}

// image is the stored state of the server at a time.
type image struct {
	at     time.Time
	every  time.Duration // until the next one
	locks  map[string]*lock
	tokens uint64
}

// NewServer returns a server with this mistake, or with none.
func NewServer(flaw Flaw) *Server {
	return &Server{
		flaw: flaw, began: time.Now(),
		locks: make(map[string]*lock), identities: make(map[string]string),
		requests: make(map[uint64]func()), conns: make(map[net.Conn]bool),
	}
}

// Listen opens the server to clients with a dialer, at the address that it returns.
func (s *Server) Listen() (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.listener = l
	s.jobs.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.jobs.Go(func() { s.Serve(conn) })
		}
	})
	return l.Addr().String(), nil
}

// Serve carries out the requests whose numbers come over conn, until that ends.
func (s *Server) Serve(conn net.Conn) {
	s.mu.Lock()
	s.conns[conn] = true
	s.mu.Unlock()
	defer func() {
		conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	}()
	var number [8]byte
	for {
		if _, err := io.ReadFull(conn, number[:]); err != nil {
			return
		}
		key := binary.BigEndian.Uint64(number[:])
		s.mu.Lock()
		f := s.requests[key]
		delete(s.requests, key)
		s.mu.Unlock()
		if f != nil {
			f()
		}
		if _, err := conn.Write(number[:]); err != nil {
			return
		}
	}
}

// Close ends the network of the server.
func (s *Server) Close() {
	if s.listener != nil {
		s.listener.Close()
	}
	s.mu.Lock()
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.jobs.Wait()
}

// Put puts something that is not a lock under the name.
func (s *Server) Put(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks[s.key(name)] = &lock{foreign: true}
}

// Rest describes what the server still keeps of a lock, or returns "".
func (s *Server) Rest(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[s.key(name)]
	if l == nil {
		return ""
	}
	s.expire(l, s.now(nil))
	if len(l.holds)+len(l.queue)+len(l.watches) == 0 {
		return ""
	}
	return fmt.Sprintf("%d holds, %d places, %d watches", len(l.holds), len(l.queue), len(l.watches))
}

func (s *Server) key(name string) string {
	if s.flaw == NamesCut && strings.Count(name, "-") > 1 {
		return strings.Join(strings.SplitN(name, "-", 3)[:2], "-")
	}
	switch s.flaw {
	case NamesFold:
		return strings.ToLower(name)
	case NamesShort:
		return name[:min(len(name), 32)]
	case NamesUTF16:
		return strings.Map(func(r rune) rune { return min(r, 0x10000) }, name)
	case NamesPlain:
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, name)
	}
	return name
}

// Storing makes the server store its state at each interval. The returned function restarts the
// server with the stored state, and without later changes. A restart ends all sessions, and wakes
// all waiters, whose connections have ended.
func (s *Server) Storing(every time.Duration) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(every)
	return s.restart
}

// store makes an image of the server. s.mu is held.
func (s *Server) store(every time.Duration) {
	s.stored = &image{
		at: time.Now(), every: every, locks: make(map[string]*lock, len(s.locks)), tokens: s.tokens,
	}
	for name, l := range s.locks {
		kept := *l
		kept.holds = slices.Clone(l.holds)
		for i, h := range kept.holds {
			h := *h
			kept.holds[i] = &h
		}
		kept.queue = slices.Clone(l.queue)
		for i, p := range kept.queue {
			p := *p
			kept.queue[i] = &p
		}
		s.stored.locks[name] = &kept
	}
}

func (s *Server) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarts++
	if time.Since(s.stored.at) < s.stored.every { // else each change was stored
		for name, l := range s.locks {
			if l.foreign {
				continue
			}
			kept := s.stored.locks[name]
			if kept == nil {
				kept = &lock{past: make(map[string]bool), broken: make(map[string]bool)}
			}
			kept.watches = l.watches
			s.locks[name] = kept
		}
		s.tokens = s.stored.tokens
		s.store(s.stored.every)
	}
	for _, l := range s.locks {
		for _, w := range l.watches {
			select {
			case w.c <- struct{}{}:
			default:
			}
		}
	}
}

// SetClock sets the clock of the server forward, or back.
func (s *Server) SetClock(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += by
}

// now is the server's clock, for a request of c.
func (s *Server) now(c *client) time.Duration {
	now := time.Since(s.began) + s.ahead
	switch {
	case s.flaw == FastClock:
		return now + now/10
	case s.flaw == SlowClock:
		return now - now/10
	case s.flaw == ClientsClock && c != nil: // the clocks of clients differ
		return now - time.Duration(c.number)*time.Second/4
	}
	return now
}

// find returns the lock called name without what has ended. s.mu is held.
func (s *Server) find(c *client, name string) (*lock, error) {
	if s.stored != nil && time.Since(s.stored.at) >= s.stored.every {
		s.store(s.stored.every)
	}
	l := s.locks[s.key(name)]
	if l == nil {
		l = &lock{past: make(map[string]bool), broken: make(map[string]bool)}
		s.locks[s.key(name)] = l
	}
	if l.foreign {
		if s.flaw != OverwritesValue {
			return nil, fmt.Errorf("fakestore: no lock: %w", locks.ErrForeign)
		}
		delete(s.locks, s.key(name))
		return s.find(c, name)
	}
	s.expire(l, s.now(c))
	return l, nil
}

// expire removes holds and places whose time is over.
func (s *Server) expire(l *lock, now time.Duration) {
	l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool {
		over := now >= h.ends
		if h.session != nil {
			over = s.over(h.session, now) && s.flaw != SessionStays
		}
		if over = over && s.flaw != NeverFree; over && s.flaw == TokenRestarts {
			s.tokens = 0
		}
		if over {
			l.lapsed = h
		}
		return over
	})
	if l.lapsed != nil && s.flaw == ReadersLapse {
		l.lapsed, l.holds = nil, nil
	}
	head := l.head()
	l.queue = slices.DeleteFunc(l.queue, func(p *place) bool {
		over := now >= p.ends || p.session != nil && s.over(p.session, now)
		return over && s.flaw != PlaceForever
	})
	if head != l.head() {
		s.notify(l)
	}
}

// over reports whether a session has ended. It then stays so.
func (s *Server) over(x *session, now time.Duration) bool {
	x.ended = x.ended || now >= x.ends || x.restarts != s.restarts
	return x.ended
}

// alive is a sign of life of a session, which must not have ended.
func (s *Server) alive(x *session) error {
	now := s.now(nil)
	if s.over(x, now) {
		return driver.Mark(errEnded, driver.ErrRefused, driver.ErrUnavailable)
	}
	if s.flaw != SessionEnds || x.ends == 0 {
		x.ends = now + x.term
	}
	return nil
}

// errEnded is matched by the error of a request in a session that has ended.
var errEnded = errors.New("fakestore: the session has ended")

func (l *lock) head() *place {
	if len(l.queue) == 0 {
		return nil
	}
	return l.queue[0]
}

// place returns the index of a place in the queue, or -1.
func (l *lock) place(acquisition string) int {
	return slices.IndexFunc(l.queue, func(p *place) bool { return p.acquisition == acquisition })
}

func (s *Server) hold(l *lock, acquisition string) *hold {
	for _, h := range l.holds {
		if h.acquisition == acquisition || s.same(h.acquisition, acquisition) {
			return h
		}
	}
	return nil
}

// same says that two acquisitions are one to a server that does not compare their whole names.
func (s *Server) same(a, b string) bool {
	i, j := strings.LastIndexByte(a, ':'), strings.LastIndexByte(b, ':')
	return s.flaw == ClientHolds && i > 0 && j > 0 && a[:i] == b[:j] || s.flaw == SerialHolds && a[i+1:] == b[j+1:]
}

// notify tells the first waiter in the queue that the lock may be free, or all waiters if the
// queue is empty.
func (s *Server) notify(l *lock) {
	if s.flaw == WatchMute {
		return
	}
	watches := l.watches
	if s.flaw == WatchOnce {
		watches = watches[:min(1, len(watches))]
	}
	reader := false // has been told, see ReaderWakes
	next := l.head()
	if next != nil && s.flaw == QueueWakes {
		next = l.queue[len(l.queue)-1]
	}
	for _, w := range watches {
		if next != nil && w.acquisition != next.acquisition {
			continue
		}
		if w.client.shared && s.flaw == ReaderWakes {
			if reader {
				continue
			}
			reader = true
		}
		if l.notices++; s.flaw == WatchHalf && l.notices%2 == 0 {
			continue
		}
		if s.flaw == WatchCloses {
			w.shut.Do(func() { close(w.c) })
			continue
		}
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// take decides one request for the lock. A request that waits has a place in the queue from then
// on.
func (s *Server) take(c *client, x *session, req driver.Request, waits bool) (driver.Reply, error) {
	name, acquisition, d := req.Name, req.Acquisition, req.TTL
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(c, name)
	if err != nil {
		return driver.Reply{}, err
	}
	if x != nil {
		if err := s.alive(x); err != nil {
			return driver.Reply{}, err
		}
	}
	now := s.now(c)
	switch s.flaw {
	case LeaseFixed:
		d = 10 * time.Second
	case LeaseSeconds:
		d = d.Truncate(time.Second)
	}
	if h := s.hold(l, acquisition); h != nil {
		h.ends = now + d
		h.count++
		if s.flaw == RepeatFrees {
			l.holds = nil
			return driver.Reply{}, nil
		}
		return driver.Reply{Held: true, Token: h.token}, nil
	}
	if s.asked++; s.flaw == SometimesFails && s.asked%5 == 0 {
		return driver.Reply{}, driver.Mark(errors.New("fakestore: not now"), driver.ErrRefused, driver.ErrUnavailable)
	}
	free := s.admits(l, c, req)
	if s.flaw == Spurious && s.asked%5 == 0 {
		free = false
	}
	if s.flaw == LateSteals && l.past[acquisition] {
		l.holds, free = nil, true
	}
	if free && s.flaw == AcquireNoLock {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	if free && s.flaw == HoldsTwice {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		free = s.admits(l, c, req) || s.hold(l, acquisition) != nil
	}
	at := l.place(acquisition)
	if at < 0 && waits && !free && s.flaw == PlacesTwice {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		free = s.admits(l, c, req)
	}
	first := at == 0 || at < 0 && len(l.queue) == 0
	if free && (first || waits && s.flaw == QueueBarges) {
		if at >= 0 && s.flaw != PlaceOfHolder {
			l.queue = slices.Delete(l.queue, at, at+1)
		}
		return s.give(l, c, x, req, now+d), nil
	}
	if waits || s.flaw == PlaceOfTry && c.queue {
		term := placeTerm
		if s.flaw == PlaceBrief {
			term = 100 * time.Millisecond
		}
		s.place(l, at, &place{acquisition, c, x, now + term})
	}
	l.refused = acquisition
	if s.flaw == RefusalsProlong {
		for _, h := range l.holds {
			h.ends = max(h.ends, now+d)
		}
	}
	return s.refuse(l, c, name, now), nil
}

// admits reports whether the holders leave room for a request of c.
func (s *Server) admits(l *lock, c *client, req driver.Request) bool {
	if c.weighs {
		return s.sufficient(l, req)
	}
	for _, h := range l.holds {
		switch {
		case s.flaw == NoExclusion:
		case s.flaw == GivesOften && s.intrudes():
		case h.shared && c.shared && s.flaw != ReadersExclude:
		case h.shared && !c.shared && s.flaw == WriterIntrudes:
		case !h.shared && c.shared && s.flaw == ReaderIntrudes:
		default:
			return false
		}
	}
	return true
}

// sufficient reports whether the holders leave as many permits as a request asks for.
func (s *Server) sufficient(l *lock, req driver.Request) bool {
	n, size := req.Weigh()
	switch s.flaw {
	case PermitTooMany:
		size++
	case PermitTooFew:
		size = max(1, size-1)
	case PermitsWeighOne:
		n = 1
	case PermitsOneByOne:
		return n == 1 && size == 1 && len(l.holds) == 0 || size > 1 && len(l.holds) == 0
	}
	taken := n
	for _, h := range l.holds {
		taken += h.permits
	}
	return taken <= size
}

// intrudes counts a request for a held lock, and reports whether it is a tenth.
func (s *Server) intrudes() bool {
	s.held++
	return s.held%10 == 0
}

// give makes acquisition a holder.
func (s *Server) give(l *lock, c *client, x *session, req driver.Request, ends time.Duration) driver.Reply {
	acquisition := req.Acquisition
	permits, _ := req.Weigh()
	if s.flaw == PermitsWeighOne {
		permits = 1
	}
	s.tokens++
	c.tokens++
	token := s.tokens
	switch s.flaw {
	case TokenSeven:
		token = 7
	case TokenPairs:
		token = (token + 1) / 2
	case TokenOfClient:
		token = c.tokens
	case TokenLapsed:
		if l.lapsed != nil {
			s.tokens--
			token = l.lapsed.token
		}
	case ReaderShortens:
		for _, h := range l.holds {
			h.ends = ends
		}
	}
	l.lapsed = nil
	l.past[acquisition] = true
	l.holds = append(l.holds, &hold{
		acquisition: acquisition, client: c, shared: c.shared, token: token,
		permits: permits, lease: ends - s.now(c), ends: ends, session: x, count: 1,
	})
	return driver.Reply{Held: true, Token: token}
}

func requestOf(acquisition string) driver.Request {
	return driver.Request{HoldID: driver.HoldID{Acquisition: acquisition}}
}

// place keeps the place of a waiter, which has it at an index, or takes a new place.
func (s *Server) place(l *lock, at int, p *place) {
	if at >= 0 {
		l.queue[at].ends = p.ends
		if s.flaw == QueueForgets {
			l.queue = append(slices.Delete(l.queue, at, at+1), p)
		}
		return
	}
	if s.flaw == QueueLIFO {
		l.queue = slices.Insert(l.queue, 0, p)
		return
	}
	l.queue = append(l.queue, p)
}

// refuse answers a request that does not get the lock.
func (s *Server) refuse(l *lock, c *client, name string, now time.Duration) (r driver.Reply) {
	for _, h := range l.holds {
		if h.session == nil {
			left := h.ends - now
			if c.weighs && r.Wait > 0 { // some permits return with the first end
				r.Wait = min(r.Wait, left)
			} else {
				r.Wait = max(r.Wait, left)
			}
		}
		if s.flaw == LossFalse && h.session != nil {
			h.session.loses(driver.HoldID{Name: name, Acquisition: h.acquisition})
		}
	}
	switch s.flaw {
	case WaitTooLong:
		r.Wait += time.Hour
	case WaitHalf:
		r.Wait /= 2
	case WaitWhole:
		for _, h := range l.holds {
			r.Wait = h.lease
		}
	}
	if s.flaw == FirstSight {
		l.holds = nil
	}
	r.Listening = s.flaw == ListensNot
	return r
}

func (s *Server) lookup(c *client, name, acquisition string) (r driver.Reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(c, name)
	if err != nil {
		return r, err
	}
	h := s.hold(l, acquisition)
	if h == nil && len(l.holds) == 0 && s.flaw == LookupAcquires {
		return s.give(l, c, nil, requestOf(acquisition), s.now(c)+time.Minute), nil
	}
	switch {
	case s.flaw == LookupFrees && h == nil:
		l.holds = nil
	case s.flaw == LookupPlace && l.place(acquisition) >= 0:
		r = driver.Reply{Held: true, Token: s.tokens}
	case s.flaw == LookupNo:
		return r, nil
	case h != nil:
		r = driver.Reply{Held: true, Token: h.token}
	case s.flaw == LookupYes, s.flaw == LookupAny && len(l.holds) > 0:
		r = driver.Reply{Held: true, Token: s.tokens}
	}
	if s.flaw == LookupToken && r.Held {
		r.Token = s.tokens + 1
	}
	return r, nil
}

func (s *Server) renew(c *client, x *session, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	renewed := make([]bool, len(holds))
	lost := false
	for i, id := range holds {
		l, err := s.find(c, id.Name)
		if err != nil {
			return nil, err
		}
		before := s.hold(l, id.Acquisition)
		if renewed[i] = before != nil; lost && s.flaw == RenewStops {
			continue
		}
		renewed[i] = s.prolong(l, c, x, i, id.Acquisition, d)
		lost = lost || !renewed[i]
	}
	if x != nil {
		_ = s.alive(x) // if it has ended, so have its holds
	}
	if s.flaw == RenewMixes {
		slices.Reverse(renewed)
	}
	return renewed, nil
}

// prolong renews the hold with the index i in its request.
func (s *Server) prolong(l *lock, c *client, x *session, i int, acquisition string, d time.Duration) bool {
	now := s.now(c)
	h := s.hold(l, acquisition)
	switch {
	case h == nil && len(l.holds) == 0 && (s.flaw == RenewAcquires || s.flaw == RenewRevives && l.past[acquisition]):
		s.give(l, c, x, requestOf(acquisition), now+d)
		return true
	case h == nil && len(l.holds) == 0 && s.flaw == RenewLate && l.lapsed != nil && l.lapsed.acquisition == acquisition:
		h, l.lapsed = l.lapsed, nil
		l.holds = append(l.holds, h)
	case h == nil && len(l.holds) > 0 && s.flaw == RenewAny:
		h = l.holds[0]
	case h == nil:
		return s.flaw == BreakRenews && l.broken[acquisition]
	}
	h.renewals++
	switch {
	case s.flaw == RenewLies, s.flaw == RenewFirst && i > 0, s.flaw == RenewOnce && h.renewals > 1:
		return true
	case s.flaw == RenewHalf:
		h.ends = now + d/2
	case s.flaw == ReaderStays && h.shared:
		for _, h := range l.holds {
			h.ends = now + d
		}
	case s.flaw == RenewAdds:
		h.ends += d
	default:
		h.ends = now + d
	}
	return s.flaw != RenewDenies
}

func (s *Server) release(c *client, name, acquisition string) (r driver.Released, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(c, name)
	if err != nil {
		return r, err
	}
	h := s.hold(l, acquisition)
	if h == nil && len(l.holds) > 0 && s.flaw == AnyoneFrees {
		h = l.holds[0]
	}
	r = driver.Released{Held: h != nil && s.flaw != ReleasedNever, Awaited: s.flaw != AwaitedNever}
	switch {
	case h == nil:
		r.Held = s.flaw == ReleasedAlways
		return r, nil
	case s.flaw == ReleaseKeeps:
		return r, nil
	case s.flaw == ReleaseFailsOnce && !h.failed:
		h.failed = true
		return driver.Released{}, errors.New("fakestore: not now")
	case s.flaw == AcquireCounts && h.count > 1:
		h.count--
		return r, nil
	case s.flaw == ReleaseAsync:
		time.AfterFunc(20*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			l.holds = slices.DeleteFunc(l.holds, func(other *hold) bool { return other == h })
			s.notify(l)
		})
		return r, nil
	case s.flaw == WakesEarly:
		s.notify(l)
		s.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		s.mu.Lock()
		l.holds = slices.DeleteFunc(l.holds, func(other *hold) bool { return other == h })
		return r, nil
	case s.flaw == QueueSeldom && len(l.queue) > 1:
		if s.releases++; s.releases%4 == 0 {
			slices.Reverse(l.queue)
		}
	case s.flaw == ReleaseLooks:
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		l.holds = nil
	}
	l.holds = slices.DeleteFunc(l.holds, func(other *hold) bool { return other == h || s.flaw == ReaderFreesAll })
	if s.flaw == RefusedLater && len(l.holds) == 0 && l.refused != "" {
		s.give(l, c, nil, requestOf(l.refused), s.now(c)+h.lease)
		l.refused = ""
	}
	s.notify(l)
	return r, nil
}

func (s *Server) leave(c *client, name, acquisition string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(c, name)
	if err != nil || s.flaw == LeaveKeeps {
		return err
	}
	head := l.head()
	switch {
	case s.flaw == LeaveFirst && head != nil:
		l.queue = l.queue[1:]
	default:
		l.queue = slices.DeleteFunc(l.queue, func(p *place) bool { return p.acquisition == acquisition })
	}
	if s.flaw == LeaveFrees {
		l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool { return h.acquisition == acquisition })
	}
	if head != l.head() && len(l.holds) == 0 && s.flaw != LeaveMute {
		s.notify(l)
	}
	return nil
}

func (s *Server) breaks(c *client, name string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(c, name)
	if err != nil {
		return false, err
	}
	held := len(l.holds) > 0
	if s.flaw == BreakNothing {
		return held, nil
	}
	for _, h := range l.holds {
		l.broken[h.acquisition] = true
		if h.session != nil {
			h.session.loses(driver.HoldID{Name: name, Acquisition: h.acquisition})
			for other, l := range s.locks {
				for _, also := range l.holds {
					if s.flaw == LossAll && also.session == h.session {
						h.session.loses(driver.HoldID{Name: other, Acquisition: also.acquisition})
					}
				}
			}
		}
	}
	l.holds = nil
	if s.flaw != BreakMute {
		s.notify(l)
	}
	if s.flaw == TokenBroken && held {
		s.tokens -= min(s.tokens, 2)
	}
	return held != (s.flaw == BreakLies), nil
}

func (s *Server) inspect(c *client, name string) (state driver.State, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(c, name)
	if err != nil {
		return state, err
	}
	claim := func(acquisition string, c *client) driver.Claim {
		return driver.Claim{Acquisition: acquisition, Identity: s.identities[c.id]}
	}
	state.Held = len(l.holds) > 0 && s.flaw != InspectFree || s.flaw == InspectHeld
	for _, h := range l.holds {
		if s.flaw == InspectFree {
			break
		}
		holder := claim(h.acquisition, h.client)
		if s.flaw == InspectOther {
			holder = driver.Claim{Acquisition: "another:1"}
		}
		if c.weighs && s.flaw != InspectForgets {
			holder.Permits = h.permits
		}
		if holder.Token = h.token; s.flaw == InspectToken {
			holder.Token++
		}
		ends := h.ends
		if h.session != nil {
			ends = h.session.ends
		}
		if holder.Left = ends - s.now(c); s.flaw == InspectLeft {
			holder.Left *= 2
		}
		state.Shared = state.Shared || h.shared
		state.Holders = append(state.Holders, holder)
	}
	for _, p := range l.queue {
		if s.flaw != InspectForgets {
			state.Waiters = append(state.Waiters, claim(p.acquisition, p.client))
		}
	}
	if state.Waiting = len(state.Waiters); s.flaw == InspectCounts {
		state.Waiting += len(l.holds)
	}
	state.Shared = state.Shared || s.flaw == InspectShared && state.Held
	if s.flaw == InspectFrees {
		l.holds = nil
	}
	return state, nil
}

func (s *Server) contended(c *client, name string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(c, name)
	if err != nil {
		return false, err
	}
	if s.flaw == ProberMute || s.flaw == ProberHolder && len(l.holds) > 0 {
		return false, nil
	}
	others := func(of *client) bool { return of != c }
	return slices.ContainsFunc(l.queue, func(p *place) bool { return others(p.client) }) ||
		slices.ContainsFunc(l.watches, func(w *watch) bool { return others(w.client) }), nil
}

package zklock

import (
	"bufio"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// greeting is how much of the server's first answer is read here: its length, the version of the protocol, the session timeout in
// milliseconds, and the session's id, which is 0 if the session that was asked for is over.
const greeting = 4 + 4 + 4 + 8

// Codes of requests, in the header of each: behind its length and number.
const (
	opCreate     = 1
	opCreate2    = 15
	opAuth       = 100
	opSetWatches = 101
)

// Places in what goes over a connection: each request and answer begins with its length, without that, and its number.
const (
	atNumber = 4
	atCode   = 8  // of a request
	atError  = 16 // of an answer, behind the number of the last change
	atPath   = 20 // of an answer, with its length in front
	inCreate = 12 // of a request to create: the path, with its length in front
)

// wire is a connection to a server, as the ZooKeeper client uses it. It reads along in the server's first answer, for the client
// does not tell what session timeout the server has granted. And it bounds the time until that answer, which the client
// awaits for much longer than a session lasts.
//
// When the client has connected anew, it tells the server its watches, and up to what change it has seen everything. It looks
// that up without protection against answers that come just then. So none but those to credentials, which say nothing of
// changes, get
// through before the watches are told.
//
// It also asks for more than the client does when a node is made: see birth.
type wire struct {
	net.Conn
	s      *session
	dialed time.Time
	limit  time.Time // of the first answer
	host   []byte    // the own address, as text

	// Of the reader.
	in     *bufio.Reader
	first  []byte // what there is of the first answer
	head   []byte // what there is of the length of the present answer
	body   int    // how much there is to come of it
	frames int    // answers that are complete
	open   bool   // all get through

	frame []byte // of the writer

	mu     sync.Mutex
	births []*birth // whose requests are under way, in their order

	begun   atomic.Bool   // the first answer is there
	watches chan struct{} // closed when the watches were told, or need not be
	creds   chan struct{} // has one for each answer to credentials that is to come
	told    sync.Once
	closed  chan struct{}
	end     sync.Once
}

func (w *wire) Close() error {
	w.end.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// Write is called with one request at a time. When it fails it closes the connection, of which the client hears when it reads, and
// reports no error: the client would tell of that itself who has made the request, and again, as of all others, when the connection
// has ended. It would wait for ever then for somebody to take the second answer, if the request was one with credentials, or
// the client is being closed.
func (w *wire) Write(b []byte) (int, error) {
	if _, err := w.write(b); err != nil {
		w.Close()
	}
	return len(b), nil
}

func (w *wire) write(b []byte) (int, error) {
	if w.begun.Load() && len(b) >= inCreate {
		switch binary.BigEndian.Uint32(b[atCode:]) {
		case opCreate:
			if m := w.s.births.find(text(b[inCreate:])); m != nil {
				return w.create(m, b)
			}
		case opAuth:
			select {
			case w.creds <- struct{}{}:
			default: // nobody has so many, and the reader's patience ends
			}
		case opSetWatches:
			w.told.Do(func() { close(w.watches) })
		}
	}
	return w.Conn.Write(b)
}

// create sends the request b, to create m, as one that is answered with the node's state too.
func (w *wire) create(m *birth, b []byte) (int, error) {
	w.frame = append(w.frame[:0], b...)
	binary.BigEndian.PutUint32(w.frame[atCode:], opCreate2)
	m.number = binary.BigEndian.Uint32(b[atNumber:])
	w.mu.Lock()
	w.births = append(w.births, m)
	w.mu.Unlock()
	m.depart(false) // what is sent from now on comes after it
	return w.Conn.Write(w.frame)
}

func (w *wire) Read(b []byte) (int, error) {
	if w.frames > 0 && len(w.head) == 0 {
		if !w.open {
			w.gate()
		}
		w.glance()
	}
	n, err := w.in.Read(b)
	w.follow(b[:n])
	return n, err
}

// glance waits for the next answer, and looks whether it is that to a creation. An error comes again when it is read.
func (w *wire) glance() {
	head, err := w.in.Peek(atNumber + 4)
	if err != nil {
		return
	}
	number, size := binary.BigEndian.Uint32(head[atNumber:]), int(binary.BigEndian.Uint32(head))
	w.mu.Lock()
	i := slices.IndexFunc(w.births, func(m *birth) bool { return m.number == number })
	if i < 0 {
		w.mu.Unlock()
		return
	}
	m := w.births[i]
	w.births = slices.Delete(w.births, i, i+1)
	w.mu.Unlock()
	answer, err := w.in.Peek(4 + size) // or it has no room there
	if err != nil || size < atPath || binary.BigEndian.Uint32(answer[atError:]) != 0 {
		return
	}
	if state := answer[atPath+4+len(text(answer[atPath:])):]; len(state) >= 8 {
		m.czxid = int64(binary.BigEndian.Uint64(state))
	}
}

// text returns the text at the beginning of b, or as much of it as there is. Its length is in front.
func text(b []byte) []byte {
	if len(b) < 4 {
		return nil
	}
	n := min(uint64(binary.BigEndian.Uint32(b)), uint64(len(b)-4))
	return b[4 : 4+n]
}

// birth is a request to create a node. The ZooKeeper client has none that is answered with the node's state. So the wire sends
// another one for it, which differs in nothing but its code, and takes the czxid from the answer. The client reads the name, which
// comes first, and leaves the rest alone.
//
// The server carries out the requests of a connection in the order in which they come. So who waits for sent may ask at once for what
// is to be seen when the node is there.
type birth struct {
	path   string // as requested
	number uint32 // of the request; the wire's
	czxid  int64  // 0 if unknown; to be read by who had the client's answer, which comes after it
	once   sync.Once
	never  bool          // it was not sent
	sent   chan struct{} // closed when it has its place among the requests, or is over without
}

func (m *birth) depart(never bool) {
	m.once.Do(func() {
		m.never = never
		close(m.sent)
	})
}

// births are those of a session, by path.
type births struct {
	mu sync.Mutex
	m  map[string]*birth
}

// begin notes that path is about to be created, once. end has to be called when that is over.
func (p *births) begin(path string) *birth {
	m := &birth{path: path, sent: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m[path] = m
	return m
}

func (p *births) find(path []byte) *birth {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m[string(path)]
}

func (p *births) end(m *birth) {
	p.mu.Lock()
	delete(p.m, m.path)
	p.mu.Unlock()
	m.depart(true)
}

// gate waits until the next answer may get through. Its patience ends if the watches are not told though they should be.
func (w *wire) gate() {
	patience := time.NewTimer(time.Until(w.limit))
	defer patience.Stop()
	select {
	case <-w.watches:
		w.open = true
	case <-patience.C:
		w.open = true
	case <-w.creds:
	case <-w.closed:
	}
}

// follow takes note of what was read.
func (w *wire) follow(p []byte) {
	for len(p) > 0 {
		n := 0
		if len(w.head) < 4 {
			n = min(len(p), 4-len(w.head))
			w.head = append(w.head, p[:n]...)
			if len(w.head) == 4 {
				w.body = int(binary.BigEndian.Uint32(w.head))
			}
		} else {
			n = min(len(p), w.body)
			w.body -= n
		}
		if w.frames == 0 {
			w.first = append(w.first, p[:n]...)
		}
		p = p[n:]
		if len(w.head) < 4 || w.body > 0 {
			continue
		}
		w.head = w.head[:0]
		w.frames++
		if w.frames == 1 && len(w.first) >= greeting {
			timeout := time.Duration(binary.BigEndian.Uint32(w.first[8:])) * time.Millisecond
			w.s.greeted(int64(binary.BigEndian.Uint64(w.first[12:])), timeout, w.dialed)
			w.begun.Store(true)
		}
	}
}

func (w *wire) SetReadDeadline(t time.Time) error {
	if !w.begun.Load() && (t.IsZero() || t.After(w.limit)) {
		t = w.limit
	}
	return w.Conn.SetReadDeadline(t)
}

func newWire(s *session, conn net.Conn, limit time.Time) *wire {
	return &wire{
		Conn: conn, s: s, limit: limit, host: []byte{}, in: bufio.NewReader(conn),
		watches: make(chan struct{}), creds: make(chan struct{}, 64), closed: make(chan struct{}),
	}
}

// dial connects to a server. No connection is made for a session that is over: it would begin another one.
func (s *session) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if s.isOver() {
		return nil, zk.ErrClosing
	}
	limit := max(s.term()/4, 50*time.Millisecond)
	dialed := time.Now()
	d := net.Dialer{Timeout: min(timeout, limit)}
	conn, err := d.Dial(network, address)
	if err != nil {
		return nil, err
	}
	w := newWire(s, conn, dialed.Add(2*limit))
	w.dialed = dialed
	if a, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		w.host = []byte(a.IP.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.anchored {
		close(w.watches)
		w.told.Do(func() {})
	}
	if s.over != nil {
		conn.Close()
		return nil, zk.ErrClosing
	}
	if s.wire != nil {
		s.wire.Close() // the client leaves some open
	}
	s.wire = w
	return w, nil
}

// hosts are the servers, one after the other. After each round there is a pause, which is shorter than the client's own.
type hosts struct {
	*zk.DNSHostProvider
	s *session
}

func (h hosts) Next() (server string, retry bool) {
	server, round := h.DNSHostProvider.Next()
	if round {
		timer := time.NewTimer(min(h.s.term()/20, 250*time.Millisecond))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-h.s.dead:
		}
	}
	return server, h.s.isOver() // the client looks whether it was closed if it is told to wait
}

// point is a node, or the list of its children, that somebody here wants to hear of: one watch at the server for all of them.
type point struct {
	fired int  // how often
	armed bool // the server knows
	ears  map[any]func(zk.Event)
}

// place is where a point is.
type place struct {
	path string
	kids bool
}

// points are those of a session.
type points struct {
	mu sync.Mutex
	m  map[place]*point
}

// listen has f called when something happens at a place, until ignore. f must not wait for anything.
func (p *points) listen(at place, who any, f func(zk.Event)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pt := p.m[at]
	if pt == nil {
		pt = &point{ears: make(map[any]func(zk.Event))}
		p.m[at] = pt
	}
	pt.ears[who] = f
}

func (p *points) ignore(at place, who any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pt := p.m[at]; pt != nil {
		delete(pt.ears, who)
		p.tidy(at, pt)
	}
}

// tidy forgets a point that nobody wants, unless the server would tell of it: the next one who wants it needs no watch then.
func (p *points) tidy(at place, pt *point) {
	if len(pt.ears) == 0 && !pt.armed {
		delete(p.m, at)
	}
}

// arming says whether a watch is needed at a place somebody listens to, and how often it has fired, for armed.
func (p *points) arming(at place) (needed bool, fired int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pt := p.m[at]
	return pt != nil && !pt.armed, p.count(pt)
}

func (p *points) count(pt *point) int {
	if pt == nil {
		return 0
	}
	return pt.fired
}

// armed notes that the server took a watch for a place, and reports whether it has not fired since.
func (p *points) armed(at place, fired int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pt := p.m[at]
	if pt == nil || pt.fired != fired {
		return false
	}
	pt.armed = true
	return true
}

func (p *points) isArmed(at place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pt := p.m[at]
	return pt != nil && pt.armed
}

// fire tells those who listen.
func (p *points) fire(e zk.Event) {
	at := place{e.Path, e.Type == zk.EventNodeChildrenChanged}
	p.tell(at, e)
	if e.Type == zk.EventNodeDeleted {
		p.tell(place{e.Path, true}, e)
	}
}

func (p *points) tell(at place, e zk.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pt := p.m[at]
	if pt == nil {
		return
	}
	pt.fired++
	pt.armed = false
	for _, f := range pt.ears {
		f(e)
	}
	p.tidy(at, pt)
}

// tellAll tells everybody, without a word of what watches there are.
func (p *points) tellAll(e zk.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pt := range p.m {
		for _, f := range pt.ears {
			f(e)
		}
	}
}

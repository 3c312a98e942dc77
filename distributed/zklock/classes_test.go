package zklock_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
)

// mood is the code of the error that servers answer to each request, unless it is 0.
type mood struct{ adaptertest.Refuser[int32] }

// answer returns the code for a request, or 0 if the request is to be sent.
func (m *mood) answer(op int32) int32 {
	if op <= 0 || op == 11 || op >= 100 { // the session's own: pings, credentials, watches, its end
		return 0
	}
	return m.Answer()
}

// dial connects to servers that have moods.
func (m *mood) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	mc := &moodyConn{Conn: c, mood: m, answers: r, add: w}
	go mc.read()
	return mc, nil
}

// moodyConn is a connection to a server that has moods. Its answers are whole, and come from a
// pipe.
type moodyConn struct {
	net.Conn
	mood    *mood
	answers *io.PipeReader
	add     *io.PipeWriter
	greeted bool // the first request, which has another form, was written

	mu sync.Mutex // held while an answer is added
}

// read adds the answers of the server.
func (c *moodyConn) read() {
	for {
		head := make([]byte, 4)
		_, err := io.ReadFull(c.Conn, head)
		if err == nil {
			frame := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
			if _, err = io.ReadFull(c.Conn, frame[4:]); err == nil {
				err = c.answer(frame)
			}
		}
		if err != nil {
			c.add.CloseWithError(err)
			return
		}
	}
}

func (c *moodyConn) answer(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.add.Write(frame)
	return err
}

func (c *moodyConn) Read(b []byte) (int, error) { return c.answers.Read(b) }

func (c *moodyConn) SetReadDeadline(time.Time) error { return nil }

func (c *moodyConn) Close() error {
	c.answers.Close()
	return c.Conn.Close()
}

// Write is called with whole requests.
func (c *moodyConn) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := 4 + int(binary.BigEndian.Uint32(rest))
		frame := rest[:n]
		rest = rest[n:]
		if c.greeted {
			if code := c.mood.answer(int32(binary.BigEndian.Uint32(frame[8:]))); code != 0 {
				reply := make([]byte, 20)
				binary.BigEndian.PutUint32(reply, 16)
				copy(reply[4:8], frame[4:8]) // the number of the request
				binary.BigEndian.PutUint32(reply[16:], uint32(code))
				go c.answer(reply)
				continue
			}
		}
		c.greeted = true
		if _, err := c.Conn.Write(frame); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// reaction is the reaction of a client to an error of a class. Without goesOn the client returns
// the error.
type reaction struct {
	is                                     error // what the error of a first request matches
	firstGoesOn, waitGoesOn, releaseGoesOn bool
}

var reactions = map[classes.Class]reaction{
	classes.Unclear:    {nil, true, true, true},
	zklock.OfSession:   {nil, true, true, true},
	classes.Moment:     {nil, true, true, true},
	classes.Request:    {lease.ErrRefused, false, false, false},
	classes.Connection: {lease.ErrLogin, false, true, false},
}

// inEachMood runs f for each code of ZooKeeper that refuses requests.
func inEachMood(t *testing.T, f func(t *testing.T, m *mood, c, rival *zklock.Client, code int32, want reaction)) {
	t.Parallel()
	s := zklock.LendServer(t)
	rival := open(t, s.Addr())
	codes := map[int32]classes.Class{ // a server fails, the connection is lost, the time is over
		-1: classes.Unclear, -4: classes.Unclear, -7: classes.Unclear,
	}
	for _, r := range zklock.Refusals {
		codes[r.Code] = r.Class
	}
	for code, class := range codes {
		want, tested := reactions[class]
		if code == 0 || !tested { // an error of the client, or one that the recipes are about
			continue
		}
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			m := new(mood)
			c := open(t, s.Addr(), zklock.WithDialer(m.dial), zklock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
			t.Cleanup(func() { m.Refuse(0) })
			l, a := c.Mutex("warm"+fmt.Sprint(-code)), adaptertest.Owner()
			require.NoError(t, l.LockContext(a))
			require.NoError(t, l.UnlockContext(a))
			f(t, m, c, rival, code, want)
		})
	}
}

func TestAFirstRequestFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, func(t *testing.T, m *mood, c, _ *zklock.Client, code int32, want reaction) {
		l, a := c.Mutex(fmt.Sprint("first", -code)), adaptertest.Owner()
		m.Refuse(code)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(a) }()
		if want.firstGoesOn {
			m.Refuses(t, 2)
			m.Refuse(0)
			require.NoError(t, <-got)
			require.NoError(t, l.UnlockContext(a))
			return
		}
		err := <-got
		require.ErrorIs(t, err, want.is)
		require.Equal(t, want.is == lease.ErrLogin, errors.Is(err, lease.ErrLogin))
	})
}

func TestAWaitFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, func(t *testing.T, m *mood, c, rival *zklock.Client, code int32, want reaction) {
		name, a, b := fmt.Sprint("wait", -code), adaptertest.Owner(), adaptertest.Owner()
		holder, l := rival.Mutex(name), c.Mutex(name)
		adaptertest.Hold(t, holder, a)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		m.Asks(t, 10)
		m.Refuse(code)
		if !want.waitGoesOn {
			require.ErrorIs(t, <-got, want.is)
			m.Refuse(0)
			require.NoError(t, holder.UnlockContext(a))
			return
		}
		m.Refuses(t, 2)
		m.Refuse(0)
		require.NoError(t, holder.UnlockContext(a))
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestNoErrorOfARenewalIsALoss(t *testing.T) {
	inEachMood(t, func(t *testing.T, m *mood, c, _ *zklock.Client, code int32, _ reaction) {
		l, a := c.Mutex(fmt.Sprint("renew", -code)), adaptertest.Owner()
		h := adaptertest.Hold(t, l, a)
		time.Sleep(200 * time.Millisecond) // its node is watched by then
		m.Refuse(code)
		got := make(chan error, 1)
		go func() { got <- h.Extend(a, time.Hour) }() // which renews
		eventually(t, "an answer, or repeated requests", func() bool {
			return len(got) == 1 || m.Refused() >= 5
		})
		m.Refuse(0)
		<-got
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestAReleaseFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, func(t *testing.T, m *mood, c, rival *zklock.Client, code int32, want reaction) {
		name, a := fmt.Sprint("release", -code), adaptertest.Owner()
		l := c.Mutex(name)
		adaptertest.Hold(t, l, a)
		m.Refuse(code)
		got := make(chan error, 1)
		go func() { got <- l.UnlockContext(a) }()
		if want.releaseGoesOn {
			m.Refuses(t, 2)
			m.Refuse(0)
			require.NoError(t, <-got)
		} else {
			err := <-got
			require.ErrorIs(t, err, locks.ErrLost)
			require.ErrorIs(t, err, want.is)
			m.Refuse(0)
		}
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), long/2) // the session lasts longer
		defer cancel()
		require.NoError(t, rival.Mutex(name).LockContext(ctx))
		require.NoError(t, rival.Mutex(name).UnlockContext(ctx))
	})
}

func TestEveryCodeHasOneReasonAndOneEntry(t *testing.T) {
	t.Parallel()
	reason := regexp.MustCompile(`^[^.\n]{8,90}$`)
	seen := make(map[int32]bool)
	for _, r := range zklock.Refusals {
		require.Regexp(t, reason, r.Why)
		if r.Err != nil {
			require.Equal(t, r.Class, zklock.ClassOf(fmt.Errorf("of the test: %w", r.Err)))
		}
		if r.Code != 0 {
			require.False(t, seen[r.Code], r.Code)
			seen[r.Code] = true
		}
		if r.Code != 0 && r.Err == nil {
			require.Equal(t, r.Class, zklock.ClassOf(fmt.Errorf("of the test: unknown error: %d", r.Code)))
		}
	}
}

func TestEachKindFollowsTheClassOfAnError(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	rival := open(t, s.Addr())
	var outages []adaptertest.Outage[int32]
	for _, class := range []classes.Class{classes.Moment, classes.Connection, classes.Request} {
		for _, r := range zklock.Refusals {
			if r.Class == class && r.Code != 0 {
				outages = append(outages, adaptertest.Outage[int32]{Answer: r.Code, Class: class})
				break
			}
		}
	}
	adaptertest.TestKinds(t, outages, func(t *testing.T) (*adaptertest.Refuser[int32], []adaptertest.Kind) {
		m := new(mood)
		c := open(t, s.Addr(), zklock.WithDialer(m.dial),
			zklock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
		warm, a := c.Mutex("warm"+fmt.Sprint(time.Now().UnixNano())), adaptertest.Owner()
		require.NoError(t, warm.LockContext(a))
		require.NoError(t, warm.UnlockContext(a))
		var all []adaptertest.Kind
		for name, kind := range kinds {
			all = append(all, adaptertest.Kind{
				Name:  name,
				Lock:  func(name string) adaptertest.Lock { return kind.lock(c, "/"+name) },
				Rival: func(name string) adaptertest.Lock { return kind.lock(rival, "/"+name) },
			})
		}
		return &m.Refuser, append(all, adaptertest.Kind{
			Name:  "read",
			Lock:  func(name string) adaptertest.Lock { return read(c.RWMutex(name)) },
			Rival: func(name string) adaptertest.Lock { return write(rival.RWMutex(name)) },
		}, adaptertest.Kind{
			Name:  "permits",
			Lock:  func(name string) adaptertest.Lock { return c.Semaphore(name, 1).Locker(1) },
			Rival: func(name string) adaptertest.Lock { return rival.Semaphore(name, 1).Locker(1) },
		})
	})
}

package testbed_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/testkit/testbed"
	"github.com/jucgo/locks/reentrant"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{
		"echo": func([]string) error {
			_, err := io.Copy(os.Stdout, os.Stdin)
			return err
		},
		"buy": func(args []string) error {
			return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
				return new(reentrant.Mutex), func() {}, nil
			})
		},
	})
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jucgo/locks/internal/testkit/testbed.start.func1.1"))
}

func TestAChildSpeaksAndEndsWhenItsInputDoes(t *testing.T) {
	c := testbed.Child(t, "echo")
	c.Say("hello")
	require.Equal(t, "hello", c.Line())
	require.True(t, c.Wait())
	c = testbed.Child(t, "echo")
	c.Kill()
	require.False(t, c.Wait())
}

func TestTheTicketsOfOneProcessAreSoldOnce(t *testing.T) {
	require.Equal(t, []int{0}, testbed.Tickets{Role: "buy", Processes: 1}.Run(t))
}

// failing is a test that may fail without this one failing.
type failing struct {
	testing.TB
	failed atomic.Bool
}

func (f *failing) Errorf(string, ...any) { f.failed.Store(true) }

func TestTicketsOfProcessesWithoutACommonLockAreFoundWrong(t *testing.T) {
	tb := &failing{TB: t}
	testbed.Tickets{Role: "buy", Limit: 10 * time.Second}.Run(tb)
	require.True(t, tb.failed.Load())
}

func TestClientsOfOneLockTakeTurns(t *testing.T) {
	mu := new(reentrant.Mutex)
	testbed.Turns{Open: func() locks.TryLocker { return mu }, Time: 100 * time.Millisecond, Limit: time.Minute}.Run(t)
}

func TestTurnsWithoutACommonLockAreFoundWrong(t *testing.T) {
	tb := &failing{TB: t}
	testbed.Turns{Open: func() locks.TryLocker { return new(reentrant.Mutex) }, Time: 10 * time.Second}.Run(tb)
	require.True(t, tb.failed.Load())
}

func TestAWaitForLongerThanTheLimitIsFound(t *testing.T) {
	tb, mu := &failing{TB: t}, new(reentrant.Mutex)
	require.NoError(t, mu.LockContext(context.Background()))
	defer mu.Unlock()
	testbed.Turns{Open: func() locks.TryLocker { return mu }, Limit: 10 * time.Millisecond}.Run(tb)
	require.True(t, tb.failed.Load())
}

// echo returns the address of a server that says what it hears.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestAProxyCutsAndHealsAndDropsAReply(t *testing.T) {
	p := testbed.NewProxy(t, echo(t))
	dial := func() (say func(line string) string) {
		var d net.Dialer
		c, err := d.DialContext(context.Background(), "tcp", p.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		r := bufio.NewReader(c)
		return func(line string) string {
			c.SetDeadline(time.Now().Add(200 * time.Millisecond))
			io.WriteString(c, line+"\n")
			answer, _ := r.ReadString('\n')
			return answer
		}
	}
	say := dial()
	require.Equal(t, "a\n", say("a"))
	for _, cut := range []func(){p.Cut, p.CutReplies, p.CutRequests} {
		cut()
		require.Empty(t, say("b"))
		p.Heal()
		require.Equal(t, "c\n", say("c"))
	}
	p.DropReply("x", 2)
	require.Equal(t, "x\n", say("x"))
	require.Equal(t, "y\n", say("y"))
	require.Empty(t, say("x"))
	require.Equal(t, 1, p.Drops())
	require.Empty(t, say("z"), "the connection stays deaf")
	require.Equal(t, "z\n", dial()("z"), "another one is not")
	p.Reset()
	require.Equal(t, "z\n", dial()("z"))
	p.Refuse()
	require.Empty(t, dial()("z"))
}

func TestAProxyThatRefusesDropsSimultaneousConnections(t *testing.T) {
	p := testbed.NewProxy(t, echo(t))
	for range 300 {
		c, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		p.Refuse()
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err = c.Read(make([]byte, 1))
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it was let through")
		c.Close()
		p.Heal()
	}
}

package leasetest_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo returns the address of a server that sends back all that it receives.
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

// A Proxy has real sockets, so this test waits in real time.
func TestAProxyCutsHealsAndDropsAReply(t *testing.T) {
	t.Parallel()
	const (
		come = time.Minute            // only a hang takes longer
		fail = 100 * time.Millisecond // no answer comes: one would come within a millisecond
	)
	p := leasetest.NewProxy(t, echo(t))
	dial := func() (say func(line string, limit time.Duration) string) {
		var d net.Dialer
		c, err := d.DialContext(context.Background(), "tcp", p.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		r := bufio.NewReader(c)
		return func(line string, limit time.Duration) string {
			c.SetDeadline(time.Now().Add(limit))
			io.WriteString(c, line+"\n")
			answer, _ := r.ReadString('\n')
			return answer
		}
	}
	say := dial()
	require.Equal(t, "a\n", say("a", come))
	quiet := dial()
	require.Equal(t, "a\n", quiet("a", come))
	for _, cut := range []func(){p.Cut, p.CutReplies, p.CutRequests} {
		cut()
		require.Empty(t, say("b", fail))
		p.Heal()
		require.Empty(t, say("c", fail), "without b")
		say = dial()
		require.Equal(t, "d\n", say("d", come))
	}
	require.Equal(t, "e\n", quiet("e", come), "it has lost nothing")
	p.DropReply("x", 2)
	require.Equal(t, "x\n", say("x", come))
	require.Equal(t, "y\n", say("y", come))
	require.Empty(t, say("x", fail))
	require.Equal(t, 1, p.Drops())
	require.Empty(t, say("z", fail), "the connection stays deaf")
	require.Equal(t, "z\n", dial()("z", come), "another one is not")
	say = dial()
	p.ResetReply("x", 1)
	require.Equal(t, "y\n", say("y", come))
	began := time.Now()
	require.Empty(t, say("x", come))
	require.Less(t, time.Since(began), come, "the connection ends")
	require.Equal(t, 2, p.Drops())
	p.Reset()
	require.Equal(t, "z\n", dial()("z", come))
	p.Refuse()
	require.Empty(t, dial()("z", fail))
}

func TestAProxyThatRefusesDropsSimultaneousConnections(t *testing.T) {
	p := leasetest.NewProxy(t, echo(t))
	for range 300 {
		c, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		p.Refuse()
		c.SetReadDeadline(time.Now().Add(time.Minute))
		_, err = c.Read(make([]byte, 1))
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it was let through")
		c.Close()
		p.Heal()
	}
}

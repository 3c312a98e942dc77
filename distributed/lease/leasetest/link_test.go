package leasetest_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// piped runs f in virtual time with a connection through a Link to a server that repeats each line.
// Say returns the answer and how long it took. The answer is empty if none comes within an hour, or
// if the connection ends.
func piped(t *testing.T, f func(t *testing.T, link *leasetest.Link, say func(line string) (string, time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link := leasetest.NewLink(t)
		conn := link.Pipe(func(conn net.Conn) {
			defer conn.Close()
			io.Copy(conn, conn)
		})
		defer conn.Close()
		r := bufio.NewReader(conn)
		f(t, link, func(line string) (string, time.Duration) {
			began := time.Now()
			conn.SetDeadline(began.Add(time.Hour))
			io.WriteString(conn, line+"\n")
			answer, _ := r.ReadString('\n')
			return answer, time.Since(began)
		})
	})
}

func TestAPipeTakesSomeTimeInBothDirections(t *testing.T) {
	piped(t, func(t *testing.T, link *leasetest.Link, say func(string) (string, time.Duration)) {
		require.False(t, leasetest.NewLink(t).Used())
		require.True(t, link.Used())
		require.Equal(t, 1, link.Connections())
		times := make(map[time.Duration]bool)
		for range 10 {
			answer, took := say("a")
			require.Equal(t, "a\n", answer)
			require.Positive(t, took)
			require.Less(t, took, 2*time.Millisecond)
			times[took] = true
		}
		require.Greater(t, len(times), 1, "by chance")
	})
}

func TestACutPipeIsSilentAndEndsWhenHealed(t *testing.T) {
	for name, cut := range map[string]func(*leasetest.Link){
		"both":     (*leasetest.Link).Cut,
		"replies":  (*leasetest.Link).CutReplies,
		"requests": (*leasetest.Link).CutRequests,
	} {
		t.Run(name, func(t *testing.T) {
			piped(t, func(t *testing.T, link *leasetest.Link, say func(string) (string, time.Duration)) {
				cut(link)
				answer, took := say("a")
				require.Empty(t, answer)
				require.Equal(t, time.Hour, took)
				link.Heal()
				answer, took = say("b")
				require.Empty(t, answer)
				require.Zero(t, took, "the connection has ended")
			})
		})
	}
}

func TestADelayedPipeIsSlow(t *testing.T) {
	piped(t, func(t *testing.T, link *leasetest.Link, say func(string) (string, time.Duration)) {
		link.Delay(time.Minute)
		answer, took := say("a")
		require.Equal(t, "a\n", answer)
		require.GreaterOrEqual(t, took, time.Minute)
		link.Heal()
		_, took = say("a")
		require.Less(t, took, time.Second)
	})
}

func TestRefusedAndResetPipesEnd(t *testing.T) {
	piped(t, func(t *testing.T, link *leasetest.Link, say func(string) (string, time.Duration)) {
		link.Reset()
		answer, took := say("a")
		require.Empty(t, answer)
		require.Zero(t, took)
		link.Refuse()
		_, err := link.Pipe(func(net.Conn) { t.Error("the server is not reached") }).Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		synctest.Wait()
		require.Zero(t, link.Connections())
	})
}

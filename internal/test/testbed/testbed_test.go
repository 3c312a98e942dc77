package testbed_test

import (
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/testbed"
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
	goleak.VerifyTestMain(m, testbed.Children())
}

func TestAChildEndsWithItsInput(t *testing.T) {
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

func TestTroubleWaitsForTheNextSale(t *testing.T) {
	troubles := 0
	testbed.Tickets{Role: "buy", Processes: 1, Buyers: 20, Trouble: func() { troubles++ }}.Run(t)
	require.LessOrEqual(t, troubles, 21)
}

// failing is a test that may fail without a failure of the calling test.
type failing struct {
	testing.TB
	failed atomic.Bool
}

func (f *failing) Errorf(string, ...any) { f.failed.Store(true) }

func TestTicketsWithoutACommonLockAreFoundWrong(t *testing.T) {
	tb := &failing{TB: t}
	testbed.Tickets{Role: "buy", Limit: 10 * time.Second}.Run(tb)
	require.True(t, tb.failed.Load())
}

func TestAPoolLendsAServerToOneTestAtATime(t *testing.T) {
	var started, emptied, ended int
	pool := testbed.Pool[int]{
		Start: func(tb testing.TB) int {
			started++
			require.DirExists(t, tb.TempDir())
			tb.Cleanup(func() { ended++ })
			return started
		},
		Empty: func(int) error { emptied++; return nil },
	}
	t.Run("two at once", func(t *testing.T) { require.NotEqual(t, pool.Lend(t), pool.Lend(t)) })
	t.Run("later", func(t *testing.T) { require.Less(t, pool.Lend(t), 3) })
	require.Equal(t, []int{2, 1, 0}, []int{started, emptied, ended})
	pool.End()
	require.Equal(t, 2, ended)
}

func TestAPoolEndsAServerThatCannotBeEmptied(t *testing.T) {
	var started, ended int
	pool := testbed.Pool[int]{
		Start: func(tb testing.TB) int {
			started++
			tb.Cleanup(func() { ended++ })
			return started
		},
		Empty: func(int) error { return io.ErrUnexpectedEOF },
	}
	t.Run("first", func(t *testing.T) { require.Equal(t, 1, pool.Lend(t)) })
	t.Run("next", func(t *testing.T) { require.Equal(t, 2, pool.Lend(t)) })
	require.Equal(t, 1, ended)
	pool.End()
	require.Equal(t, 2, ended)
}

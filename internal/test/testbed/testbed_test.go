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
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jucgo/locks/internal/test/testbed.start.func1.1"))
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

// failing is a test that may fail without this one failing.
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

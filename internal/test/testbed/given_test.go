package testbed_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

const givenVariable = "LOCKS_TESTBED_URL"

func TestWithoutAGivenServerATestStartsItsOwn(t *testing.T) {
	_, ok := testbed.Given(t, givenVariable)
	require.False(t, ok)
	require.Nil(t, testbed.GivenURL(t, givenVariable))
}

// named is a test that runs beside others although it uses the environment.
type named struct {
	testing.TB
	name     string
	cleanups []func()
}

func (n *named) Name() string     { return n.name }
func (n *named) Cleanup(f func()) { n.cleanups = append(n.cleanups, f) }

func (n *named) end() {
	for _, f := range slices.Backward(n.cleanups) {
		f()
	}
}

func TestTestsTakeTurnsOnAGivenServer(t *testing.T) {
	t.Setenv(givenVariable, "redis://127.0.0.1:6379/")
	var users atomic.Int64
	var tests sync.WaitGroup
	for i := range 8 {
		tests.Go(func() {
			test := &named{TB: t, name: fmt.Sprint("Test", i)}
			defer test.end()
			server, ok := testbed.Given(test, givenVariable)
			assert.True(t, ok)
			assert.Equal(t, "127.0.0.1:6379", server.Host)
			assert.EqualValues(t, 1, users.Add(1))
			time.Sleep(time.Millisecond) // another test may come now
			users.Add(-1)
		})
	}
	tests.Wait()
}

func TestATestWithAGivenServerGetsNoSecondOne(t *testing.T) {
	t.Setenv(givenVariable, "redis://127.0.0.1:6379/")
	_, ok := testbed.Given(t, givenVariable)
	require.True(t, ok)
	_, ok = testbed.Given(t, givenVariable)
	require.False(t, ok)
	t.Run("inside", func(t *testing.T) {
		_, ok := testbed.Given(t, givenVariable)
		require.False(t, ok)
	})
}

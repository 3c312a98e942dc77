package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// An extension by an hour has no answer. The answer to a later extension does not say whether the
// first one will be carried out yet.
func TestAnAnsweredExtensionLeavesAnEarlierOneInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(giving{})
		require.NoError(t, err)
		defer c.Close(t.Context())
		g := &grant{s: &c.schedule, id: driver.HoldID{Name: "it"}, ttl: time.Minute, until: c.now().Add(time.Minute), index: -1}
		g.noteNoAnswer(g.request(time.Hour))
		require.True(t, g.noteAnswer(g.request(time.Minute)))
		require.True(t, g.lose(nil))
		require.False(t, g.atMost().Before(g.over().Add(time.Hour)))
		g.noteDenial()
		require.Equal(t, g.over(), g.atMost(), "the store has no such hold")
	})
}

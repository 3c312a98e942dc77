package caslock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// stuck is a server that answers no write of some documents, which its client renews.
type stuck struct{ *server }

func (s stuck) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if strings.HasPrefix(name, "stuck") && version != "" {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return s.server.Swap(ctx, name, data, version)
}

func TestAStuckRenewalCostsNoOtherHold(t *testing.T) {
	for _, many := range []int{1, 16} { // 16 of them leave no room for others
		bubble(t, func(t *testing.T, s *server) {
			c := open(t, stuck{s})
			owner := adaptertest.Owner()
			hold := func(name string) (holds []locks.Hold) {
				for i := range many {
					l := c.Mutex(fmt.Sprint(name, i))
					require.NoError(t, l.LockContext(owner))
					h, err := l.Hold(owner)
					require.NoError(t, err)
					holds = append(holds, h)
				}
				return holds
			}
			hangs, others := hold("stuck"), hold("it")
			time.Sleep(3 * term)
			for i := range many {
				require.ErrorIs(t, hangs[i].Err(), locks.ErrLost)
				require.NoError(t, others[i].Err())
			}
		})
	}
}

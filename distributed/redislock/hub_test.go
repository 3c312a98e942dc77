package redislock

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// homeless is a port of which nobody knows where a channel is.
type homeless struct{ port }

func (homeless) Home(context.Context, string) (string, error) { return "", errors.New("nowhere") }

func TestWaitersGiveUpWhileTheirChannelMoves(t *testing.T) {
	h := newHub(homeless{})
	defer h.close(context.Background())
	for range 50 {
		l := &link{h: h, shard: true, topics: make(map[string]*topic), changed: make(map[string]struct{}), kick: make(chan struct{}, 1)}
		var all []*watch
		for range 20 {
			w := &watch{c: make(chan struct{}, 1)}
			w.add(l.watch("it", w))
			all = append(all, w)
		}
		var wg sync.WaitGroup
		wg.Go(l.move)
		for _, w := range all {
			wg.Go(w.Close)
		}
		wg.Wait()
		if left := l.topics["it"]; left != nil { // the writer would drop it
			require.Empty(t, left.watches)
		}
	}
}

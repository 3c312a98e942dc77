package goredis

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAGoneServersSubscriptionsAreForgotten(t *testing.T) {
	var gone atomic.Bool
	c := redis.NewClient(&redis.Options{
		DialerRetries: 1, MaxRetries: -1, DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if gone.Load() {
				return nil, errors.New("gone")
			}
			ours, theirs := net.Pipe()
			go func() { // it says that it knows no HELLO, which is so of old servers
				buf := make([]byte, 1024)
				for {
					n, err := theirs.Read(buf)
					if err != nil || gone.Load() {
						theirs.Close()
						return
					}
					if strings.Contains(strings.ToLower(string(buf[:n])), "hello") {
						theirs.Write([]byte("-ERR unknown command\r\n"))
					}
				}
			}()
			return ours, nil
		},
	})
	defer c.Close()
	ctx := context.Background()
	s := &subscriber{ps: c.SSubscribe(ctx), sharded: true}
	defer s.Close()
	require.NoError(t, s.Subscribe(ctx, "a", "b", "c"))
	require.NotEqual(t, "PubSub()", s.ps.String())
	gone.Store(true)
	require.Eventually(t, func() bool { return s.Ping(ctx) != nil }, 10*time.Second, time.Millisecond)
	require.Error(t, s.Unsubscribe(ctx, "a", "b", "c"))
	require.Equal(t, "PubSub()", s.ps.String())
}

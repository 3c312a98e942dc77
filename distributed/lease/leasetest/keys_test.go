package leasetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
)

// keyedProvider is a provider of locks with keys of its own.
type keyedProvider struct {
	locks.Provider
	key func(name string) string
}

type keyedLock struct {
	locks.TryLocker
	key string
}

func (p keyedProvider) Locker(name string) locks.TryLocker {
	return keyedLock{p.Provider.Locker(name), p.key(name)}
}

func (l keyedLock) LockKey() string { return l.key }

func TestAKeyThatOrdersNothingIsFound(t *testing.T) {
	var clients atomic.Int64
	for want, key := range map[string]func(name string) string{
		"a lock has one key for all clients": func(name string) string { return fmt.Sprint(name, clients.Add(1)) },
		"two locks have two keys":            func(string) string { return "locks" },
		"":                                   func(name string) string { return fmt.Sprint("\x00", name, clients.Add(1)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := fake(t, "", fakestore.Watched)
			cfg.Rest = nil
			store := cfg.Store
			cfg.Store = nil
			cfg.Open = func(tb testing.TB, link *Link, opts ...lease.Option) locks.Provider {
				c, err := lease.New(store(tb, link), opts...)
				require.NoError(tb, err)
				tb.Cleanup(func() { c.Close(context.Background()) })
				return keyedProvider{c, key}
			}
			found := record(t, byName(t, "LockKeys").virtually, cfg)
			if want == "" {
				require.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			require.Contains(t, found[0], want)
		})
	}
}

package caslock_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// broken is a server that breaks promises of Documents.
type broken struct {
	*server
	load func(data []byte, version string) ([]byte, string, error) // what becomes of the answer
	swap func(old, version string) (string, error)
}

func (b broken) Load(ctx context.Context, name string) ([]byte, string, error) {
	data, version, err := b.server.Load(ctx, name)
	if b.load != nil && err == nil {
		return b.load(data, version)
	}
	return data, version, err
}

func (b broken) Swap(ctx context.Context, name string, data []byte, old string) (string, error) {
	version, err := b.server.Swap(ctx, name, data, old)
	if b.swap != nil && err == nil {
		return b.swap(old, version)
	}
	return version, err
}

func TestADocumentWithoutVersionIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		adaptertest.Pair(t, open(t, s).Mutex("it"))
		s.requests()
		l := open(t, broken{server: s, load: func(data []byte, _ string) ([]byte, string, error) {
			return data, "", nil
		}}).Mutex("it")
		_, err := l.TryLockContext(adaptertest.Owner())
		require.ErrorIs(t, err, lease.ErrRefused)
		require.ErrorContains(t, err, "a document without a version")
		costs(t, s, 1, 0, "a try")
	})
}

func TestASuccessWithoutNewVersionIsAnError(t *testing.T) {
	for what, swap := range map[string]func(old, version string) (string, error){
		"no version":      func(_, _ string) (string, error) { return "", nil },
		"the old version": func(old, _ string) (string, error) { return old, nil },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				adaptertest.Pair(t, open(t, s).Mutex("it"))
				l := open(t, broken{server: s, swap: swap}).Mutex("it")
				owner := adaptertest.Owner()
				require.NoError(t, l.LockContext(owner), "it finds its acquisition")
				h, err := l.Hold(owner)
				require.NoError(t, err)
				time.Sleep(term)
				require.ErrorIs(t, h.Err(), locks.ErrLost, "after renewals that may be none")
				require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
			})
		})
	}
}

func TestAHolderWithoutALeaseIsForeign(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		data, err := json.Marshal(nativeObject{Spec: nativeSpec{HolderIdentity: "pod-7", RenewTime: time.Now()}})
		require.NoError(t, err)
		s.put("it", string(data))
		l := open(t, s, caslock.WithFormat(native{})).Mutex("it")
		_, err = l.TryLockContext(adaptertest.Owner())
		require.ErrorIs(t, err, locks.ErrForeign)
		require.Equal(t, string(data), s.data("it"))
	})
}

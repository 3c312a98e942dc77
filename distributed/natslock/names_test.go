package natslock

import (
	"context"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

// strange are names that need care.
var strange = []string{
	"orders", "team/nightly", "a.b", "a..b", ".", "..", ".a", "a.", "a b", "a*b", ">", "$KV", "=", "=2E", "a=",
	"50%", "a\x00b", "\xff", "ä", "日本", "_kv", "_kvx", "x_kv", "_", "-", "/", "//",
}

// Keys have the form that the library demands, and are tokens that are not empty.
var valid = regexp.MustCompile(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`)

func TestEachNameHasAKeyOfItsOwn(t *testing.T) {
	names := make(map[string]string)
	for _, name := range strange {
		key := keyOf(name)
		require.Regexp(t, valid, key, name)
		require.NotRegexp(t, "^_kv", key)
		require.Empty(t, names[key])
		names[key] = name
		back, ok := nameOf(key)
		require.True(t, ok, name)
		require.Equal(t, name, back)
	}
}

func TestOtherKeysAreNoLocks(t *testing.T) {
	for _, key := range []string{"a=", "a=2", "a=zz", "=61", "a=2e", "_kv", "a=2Eb"} {
		_, ok := nameOf(key)
		require.False(t, ok, key)
	}
}

func FuzzKeyOf(f *testing.F) {
	for _, name := range strange {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		key := keyOf(name)
		if name != "" && !valid.MatchString(key) {
			t.Errorf("%q has the key %q", name, key)
		}
		if back, ok := nameOf(key); !ok || back != name {
			t.Errorf("%q has the key of %q", back, name)
		}
	})
}

// slow is a bucket without end that tells of a key after each pause. After some, it is silent.
type slow struct {
	jetstream.KeyValue
	pause time.Duration
	keys  int // until it is silent
}

type entry struct{ jetstream.KeyValueEntry }

func (entry) Key() string { return "key" }

type watcher struct {
	updates chan jetstream.KeyValueEntry
	stop    func()
}

func (w watcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

func (w watcher) Stop() error {
	w.stop()
	return nil
}

// Watch tells of keys as the library does: it does not end while nobody receives.
func (s slow) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	stopped := make(chan struct{})
	w := watcher{make(chan jetstream.KeyValueEntry), sync.OnceFunc(func() { close(stopped) })}
	go func() {
		defer close(w.updates)
		for range s.keys {
			select {
			case <-time.After(s.pause):
				w.updates <- entry{}
			case <-stopped:
				return
			}
		}
		<-stopped
	}()
	return w, nil
}

func TestAListThatHangsEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := &documents{kv: slow{pause: 4 * time.Second, keys: 3}, timeout: 5 * time.Second}
		names, err := d.Names(t.Context())
		require.ErrorIs(t, err, lease.ErrUnavailable)
		require.Equal(t, []string{"key"}, names)
		require.Equal(t, (3*4+5)*time.Second, time.Since(began))
	})
}

func TestAListThatIsCutShortLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
		d := &documents{kv: slow{pause: time.Nanosecond, keys: 1000}, timeout: 5 * time.Second}
		err := d.follow(t.Context(), jetstream.AllKeys, func() {}, func(jetstream.KeyValueEntry) bool {
			time.Sleep(time.Second) // the library has the next key, and waits
			return false
		})
		require.NoError(t, err)
	})
}

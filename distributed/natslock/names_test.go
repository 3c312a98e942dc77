package natslock

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
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

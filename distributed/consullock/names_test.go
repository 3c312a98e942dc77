package consullock

import (
	"path"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// strange are names that need care.
var strange = []string{
	"orders", "team/nightly", "a.b", "a..b", ".", "..", ".a", "a.", "./a", "a/./b", "a/../b", "a/..", "../a", "a/.lock",
	"a b", "?", "#", "=", "=2E", "a=", "50%", "%2F", "a\x00b", "\xff", "ä", "日本", "~", "-", "_", "/", "//", "/a", "a/",
	"a//b", "...", "a/.../b",
}

// Keys have only characters that stand for themselves in a URL.
var valid = regexp.MustCompile(`^[-_.~/=a-zA-Z0-9]+$`)

func TestEachNameHasAKeyOfItsOwn(t *testing.T) {
	names := make(map[string]string)
	for _, name := range strange {
		key := keyOf(name)
		require.Regexp(t, valid, key, name)
		require.Equal(t, "/"+key, path.Clean("/"+key), "no server takes anything out of it")
		require.Empty(t, names[key])
		names[key] = name
		back, ok := nameOf(key)
		require.True(t, ok, name)
		require.Equal(t, name, back)
	}
}

func TestOtherKeysAreNoLocks(t *testing.T) {
	for _, key := range []string{"", "a=", "a=2", "a=zz", "=61", "a=2e", "a/", "/a", "a//b", "a/../b", "a b"} {
		_, ok := nameOf(key)
		require.False(t, ok, key)
	}
}

func FuzzKeyOf(f *testing.F) {
	for _, name := range strange {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			return
		}
		key := keyOf(name)
		if !valid.MatchString(key) || path.Clean("/"+key) != "/"+key {
			t.Errorf("%q has the key %q", name, key)
		}
		if back, ok := nameOf(key); !ok || back != name {
			t.Errorf("%q has the key of %q", back, name)
		}
	})
}

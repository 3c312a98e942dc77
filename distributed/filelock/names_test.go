package filelock_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

func TestNamesBecomeFilesThatPeopleCanTell(t *testing.T) {
	dir := t.TempDir()
	p := provide(t, dir)
	for name, want := range map[string]string{
		"orders":        "orders.lock",
		"a.b-c_9":       "a.b-c_9.lock",
		"":              "%.lock",
		".":             "%2E.lock",
		"..":            "%2E..lock",
		"../x":          "%2E.%2Fx.lock",
		"/etc/passwd":   "%2Fetc%2Fpasswd.lock",
		"Orders":        "%4Frders.lock",
		"50%":           "50%25.lock",
		"é":             "%C3%A9.lock",
		"con":           "%63on.lock",
		"com1.a":        "%63om1.a.lock",
		"console":       "console.lock",
		"nul\x00":       "nul%00.lock",
		"\xff":          "%FF.lock",
		"C:\\x":         "%43%3A%5Cx.lock",
		"it/lock?a=b&c": "it%2Flock%3Fa%3Db%26c.lock",
	} {
		require.Equal(t, filepath.Join(dir, want), p.Path(name), "%q", name)
		l := p.Locker(name)
		require.NoError(t, l.LockContext(t.Context()), "%q", name)
		require.FileExists(t, filepath.Join(dir, want))
		require.NoError(t, l.UnlockContext(t.Context()))
	}
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, all, 17)
	names, err := p.Names(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, names, 17, "the name of each file is known")
	long := strings.Repeat("a", 1000)
	require.Regexp(t, `^a{96}%%[0-9a-f]{64}\.lock$`, filepath.Base(p.Path(long)))
	require.NotEqual(t, p.Path(long), p.Path(long+"a"))
	require.Equal(t, strings.Repeat("a", 180)+".lock", filepath.Base(p.Path(long[:180])))
	require.Regexp(t, `^(%2F){32}%%[0-9a-f]{64}\.lock$`, filepath.Base(p.Path(strings.Repeat("/", 100))))
	require.Regexp(t, `^a(%2F){31}%%[0-9a-f]{64}\.lock$`, filepath.Base(p.Path("a"+strings.Repeat("/", 100))))
}

func TestNamesListsTheDirectorysFilesByPattern(t *testing.T) {
	dir := t.TempDir()
	p := provide(t, dir)
	for _, name := range []string{"b", "a", "a/b", "50%", "", "[x]", strings.Repeat("/", 100)} {
		l := p.Locker(name)
		require.NoError(t, l.LockContext(t.Context()))
		require.NoError(t, l.UnlockContext(t.Context()))
	}
	for _, other := range []string{"README", "A.lock", "%4.lock", "%zz.lock", "%61.lock"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.lock"), 0o700))
	for pattern, want := range map[string][]string{
		"":        {"", "50%", "[x]", "a", "a/b", "b"},
		"*":       {"", "50%", "[x]", "a", "b"},
		"a*":      {"a"},
		"*/*":     {"a/b"},
		"[[]*":    {"[x]"},
		"%":       nil,
		"\\[x\\]": {"[x]"},
	} {
		names, err := p.Names(t.Context(), pattern)
		require.NoError(t, err)
		require.Equal(t, want, names, pattern)
	}
	_, err := p.Names(t.Context(), "[")
	require.ErrorIs(t, err, path.ErrBadPattern)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Names(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	_, err = p.Names(nil, "") //nolint:staticcheck // what is tested
	require.ErrorIs(t, err, locks.ErrNilContext)
}

// FuzzNames checks that a name becomes one harmless element of a path, and that no two become
// the same, also where case does not count.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a/b", "A", "%41", "con", "CON", "com1",
		strings.Repeat("x", 300), strings.Repeat("/", 61)} {
		f.Add(s, s+"a")
		f.Add(strings.ToUpper(s), s)
	}
	p, err := filelock.New(f.TempDir())
	require.NoError(f, err)
	f.Cleanup(func() { p.Close(f.Context()) })
	f.Fuzz(func(t *testing.T, a, b string) {
		path := p.Path(a)
		base := filepath.Base(path)
		require.Equal(t, filepath.Dir(p.Path("x")), filepath.Dir(path))
		require.LessOrEqual(t, len(base), 255)
		require.Regexp(t, `^[a-z0-9_%-][a-zA-F0-9_.%-]*\.lock$|^[a-z0-9_%-]\.lock$`, base)
		device, _, _ := strings.Cut(base, ".")
		require.NotRegexp(t, `^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`, device)
		if a != b {
			require.NotEqual(t, strings.ToLower(base), strings.ToLower(filepath.Base(p.Path(b))))
		}
	})
}

func TestAnEmptyPathIsRefused(t *testing.T) {
	_, err := filelock.New("")
	require.Error(t, err, "it is not wherever the process happens to be")
	_, err = filelock.Open("")
	require.Error(t, err)
}

func TestNoNameIsRefused(t *testing.T) {
	c := provide(t, t.TempDir())
	for _, name := range []string{"", ".", "..", "/", "../x", "a\x00b", "a\nb", "\xff", strings.Repeat("n", 10_000)} {
		l, ctx := c.Mutex(name), locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, l.LockContext(ctx), "%q", name)
		require.Equal(t, filepath.Dir(l.Path()), filepath.Dir(c.Path("it")))
		require.NoError(t, l.UnlockContext(ctx))
	}
	_, err := filelock.New("a\x00b")
	require.Error(t, err)
	_, err = filelock.Open("a\x00b")
	require.Error(t, err)
}

package identity

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALabelSurvivesTheStore(t *testing.T) {
	for _, label := range []string{"orders", `a "quoted" {"label":1}`, "中文 <&>", strings.Repeat("\"", MaxLabel)} {
		text, err := Of(label)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), maxText)
		p, ok := Parse(text)
		require.True(t, ok)
		require.Equal(t, locks.Party{Label: label, Host: host, PID: os.Getpid()}, p)
	}
}

func TestTheDefaultLabelNamesHostAndProcess(t *testing.T) {
	text, err := Of("")
	require.NoError(t, err)
	p, ok := Parse(text)
	require.True(t, ok)
	require.Contains(t, p.Label, "/")
	require.Equal(t, os.Getpid(), p.PID)
}

func TestABadLabelIsRefused(t *testing.T) {
	for _, label := range []string{strings.Repeat("x", MaxLabel+1), "a\nb", "\x00", "\x7f", "\u0085", "\xff"} {
		_, err := Of(label)
		require.ErrorContains(t, err, "label", "%q", label)
	}
}

func TestOtherTextIsNoIdentity(t *testing.T) {
	for _, text := range []string{
		"", "10.0.0.1", "__REVOKE__", "null", "{}", "[]", "7", `{"label":"a\nb"}`, `{"pid":"x"}`,
		`{"label":"` + strings.Repeat("x", maxText) + `"}`,
	} {
		_, ok := Parse(text)
		require.False(t, ok, "%q", text)
	}
}

func TestAForeignNameBecomesALabel(t *testing.T) {
	require.Equal(t, "6ba7b810:1", Foreign("6ba7b810:1"))
	for _, name := range []string{
		"a\nb", "\xff\xfe", strings.Repeat("\x01", 2*MaxLabel), strings.Repeat("é", MaxLabel),
	} {
		require.NoError(t, check(Foreign(name)), "%q", name)
	}
}

func TestSerialsNeverRepeat(t *testing.T) {
	var counter atomic.Uint64
	var mu sync.Mutex
	seen := make(map[uint64]bool)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				n := Serial(&counter)
				mu.Lock()
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 8000)
}

func TestANameTellsWhenItsAcquisitionBegan(t *testing.T) {
	const client = "01234567-89ab-8def-8123-456789abcdef"
	at := time.Date(2026, 11, 22, 16, 0, 0, 123456000, time.UTC)
	require.True(t, at.Equal(Began(client+":1795363200123456")))
	for _, name := range []string{
		"", client, client + ":1", client + ":x", client + ":99999999999999999", "java:1795363200123456",
		"01234567-89ab-4def-8123-456789abcdef:1795363200123456",
	} {
		require.True(t, Began(name).IsZero(), name)
	}
}

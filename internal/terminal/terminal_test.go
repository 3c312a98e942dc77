package terminal_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHarmlessTextStays(t *testing.T) {
	for _, text := range []string{"", "orders/42 (write)", "Grüße 锁 🔒", "a\u00a0b", "e\u0301"} {
		require.Equal(t, text, terminal.Line(text))
		require.Equal(t, text, terminal.Lines(text))
	}
}

func TestCharactersThatSteerATerminalAreReplaced(t *testing.T) {
	for _, c := range []string{"\x00", "\x1b", "\r", "\x7f", "\u0085", "\u009b", "\u202e", "\u2066", "\u200f",
		"\u200b", "\u2028", "\ufeff", "\x9b", "\xff"} {
		require.Equal(t, "a\ufffdb", terminal.Line("a"+c+"b"), "%q", c)
		require.Equal(t, "a\ufffdb", terminal.Lines("a"+c+"b"), "%q", c)
	}
}

func TestOnlyLinesKeepsTabsAndEndsOfLines(t *testing.T) {
	require.Equal(t, "a\tb\nc", terminal.Lines("a\tb\nc"))
	require.Equal(t, "a\ufffdb\ufffdc", terminal.Line("a\tb\nc"))
}

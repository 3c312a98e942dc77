package adapter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// escaped escapes all bytes but small letters.
func escaped(name string) string {
	return Escape(name, '=', func(i int) bool { return 'a' <= name[i] && name[i] <= 'z' })
}

func TestANameReturnsFromItsText(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "abc": "abc", "a=b": "a=3Db", "=": "=3D", "a/B": "a=2F=42", "\x00\xff": "=00=FF", "é": "=C3=A9",
	} {
		require.Equal(t, want, escaped(name))
		back, ok := Unescape(want, '=')
		require.True(t, ok)
		require.Equal(t, name, back)
	}
}

func TestATextWithoutDigitsHasNoName(t *testing.T) {
	for _, text := range []string{"=", "a=4", "=4=42", "=XY", "=42="} {
		_, ok := Unescape(text, '=')
		require.False(t, ok, text)
	}
}

package adapter

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Escape returns name with sign and two hexadecimal digits in place of each byte that is not plain.
// The sign itself must not be plain. Then different names have different texts.
func Escape(name string, sign byte, plain func(i int) bool) string {
	var text strings.Builder
	for i := range len(name) {
		if plain(i) {
			text.WriteByte(name[i])
		} else {
			fmt.Fprintf(&text, "%c%02X", sign, name[i])
		}
	}
	return text.String()
}

// Unescape returns the name that has the text, and false if digits are missing. The caller compares
// the text of the name: other texts may stand for the same name.
func Unescape(text string, sign byte) (name string, ok bool) {
	name, rest, found := strings.Cut(text, string(rune(sign)))
	for found {
		c, err := hex.DecodeString(rest[:min(2, len(rest))])
		if err != nil || len(c) != 1 {
			return "", false
		}
		var plain string
		plain, rest, found = strings.Cut(rest[2:], string(rune(sign)))
		name += string(c) + plain
	}
	return name, true
}

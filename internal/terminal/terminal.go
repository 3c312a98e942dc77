// Package terminal makes texts of unknown origin safe to show, and knows the language and the width
// of texts.
package terminal

import (
	"strings"
	"unicode"
)

// Line replaces each invisible character of s by U+FFFD. Invisible are controls: U+001B and
// U+009B begin a command to a terminal. Ends of lines and formats are invisible too: U+202E
// reverses the text. Bytes that are not UTF-8 are replaced too.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Lines is Line, but keeps tabs and the ends of lines.
func Lines(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

package terminal

import (
	"strings"
	"unicode"
)

// Chinese reports whether an environment asks for Chinese, as getenv tells: the first of LC_ALL,
// LC_MESSAGES and LANG that is set decides.
func Chinese(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := getenv(name); value != "" {
			language, _, _ := strings.Cut(strings.NewReplacer("_", ".", "-", ".").Replace(value), ".")
			return strings.EqualFold(language, "zh")
		}
	}
	return false
}

// Wide reports whether a terminal gives r two columns: Chinese characters and full-width
// punctuation.
func Wide(r rune) bool {
	return unicode.Is(unicode.Han, r) || r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff60 ||
		r >= 0xffe0 && r <= 0xffe6
}

// Columns returns how many columns of a terminal a text takes.
func Columns(text string) (n int) {
	for _, r := range text {
		n++
		if Wide(r) {
			n++
		}
	}
	return n
}

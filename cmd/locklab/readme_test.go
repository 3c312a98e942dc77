package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A translation that lags behind is worse than none. The test compares what can be compared:
// the blocks of code and commands, what the tables and sections have in common, and the links
// from one to the other.
func TestTheReadmesAgree(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	english, chinese := read("README.md"), read("README.zh-CN.md")
	assert.Contains(t, english, "[简体中文](README.zh-CN.md)")
	assert.Contains(t, chinese, "[English](README.md)")

	for what, pattern := range map[string]string{
		"blocks of code":       "(?ms)^```.*?^```$",
		"levels of headings":   `(?m)^#+ `,
		"rows of tables":       `(?m)^\|( ` + "`[^`]*`" + `)+ \|`,
		"points of lists":      `(?m)^- `,
		"links and pictures":   `\]\(docs[^)]*\)`,
		"separators of tables": `(?m)^\|( --- \|)+$`,
	} {
		want := regexp.MustCompile(pattern).FindAllString(english, -1)
		require.NotEmpty(t, want, what)
		assert.Equal(t, want, regexp.MustCompile(pattern).FindAllString(chinese, -1), what)
	}

	// Names in code are the same, in the same order or another.
	code := func(text string) map[string]int {
		names := map[string]int{}
		text = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
		for _, name := range regexp.MustCompile("`[^`\n]+`").FindAllString(text, -1) {
			names[name]++
		}
		return names
	}
	assert.Equal(t, code(english), code(chinese))
}

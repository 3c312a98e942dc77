package main

import (
	"os"
	"path"
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
	agree(t, "README", map[string]string{
		"blocks of code":       "(?ms)^```.*?^```$",
		"levels of headings":   `(?m)^#+ `,
		"rows of tables":       `(?m)^\|( ` + "`[^`]*`" + `)+ \|`,
		"points of lists":      `(?m)^- `,
		"links and pictures":   `\]\(docs[^)]*\)`,
		"separators of tables": `(?m)^\|( --- \|)+$`,
	})
}

// agree checks that a page and its translation have the same parts, and the same names in code. A
// link to a translated page stands for one to the page.
func agree(t *testing.T, page string, parts map[string]string) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		require.NoError(t, err)
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	english, chinese := read(page+".md"), read(page+".zh-CN.md")
	name := path.Base(page)
	assert.Contains(t, english, "[简体中文]("+name+".zh-CN.md)")
	assert.Contains(t, chinese, "[English]("+name+".md)")
	chinese = strings.ReplaceAll(chinese, ".zh-CN.md)", ".md)")
	chinese = strings.ReplaceAll(chinese, "](docs/zh/", "](docs/")
	for what, pattern := range parts {
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

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	links   = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	tests   = regexp.MustCompile("`(Test[A-Za-z]+)`")
	modules = regexp.MustCompile(`\b(filelock|sqllock|redislock|zklock|etcdlock|lease)\b`)
)

// choosing returns the page about which lock to take, and the directory it is in.
func choosing(t *testing.T) (page, dir string) {
	t.Helper()
	dir = filepath.Join("..", "..", "docs")
	b, err := os.ReadFile(filepath.Join(dir, "choosing.md"))
	require.NoError(t, err)
	return string(b), dir
}

func TestWhatThePageAboutChoosingLinksToExists(t *testing.T) {
	page, dir := choosing(t)
	found := links.FindAllStringSubmatch(page, -1)
	require.Greater(t, len(found), 10)
	for _, link := range found {
		if link[1] == "" {
			link[1] = "choosing.md"
		}
		path := filepath.Join(dir, filepath.FromSlash(link[1]))
		_, err := os.Stat(path)
		require.NoError(t, err, link[0])
		if link[2] == "" {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err, link[0])
		heading := "\n## " + strings.ReplaceAll(link[2][1:], "-", " ") + "\n"
		require.Contains(t, strings.ToLower(string(text)), heading, link[0])
	}
}

// The page names tests behind their packages, "redislock, etcdlock `TestX`", or in front,
// "`TestX` of redislock and etcdlock"; semicolons and the bars of a table end that.
func TestTheTestsThatThePageAboutChoosingNamesExist(t *testing.T) {
	page, _ := choosing(t)
	n := 0
	for _, part := range regexp.MustCompile(`[;|\n]`).Split(page, -1) {
		for _, test := range tests.FindAllStringSubmatch(part, -1) {
			of := modules.FindAllString(part, -1)
			require.NotEmpty(t, of, "a test of no package: %s", part)
			for _, m := range of {
				require.True(t, declared(t, m, test[1]), "%s has no %s", m, test[1])
				n++
			}
		}
	}
	require.Greater(t, n, 30)
}

func declared(t *testing.T, module, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "distributed", module, "*_test.go"))
	require.NoError(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		if strings.Contains(string(b), "\nfunc "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}

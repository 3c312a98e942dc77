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
	tests   = regexp.MustCompile("`(Test[A-Za-z]+)`")
	modules = regexp.MustCompile(
		`\b(filelock|sqllock|redislock|zklock|etcdlock|consullock|natslock|dynamolock|s3lock|gcslock|` +
			`k8slock|caslock|lease)\b`)
)

// choosing returns the page about which lock to take.
func choosing(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "choosing.md"))
	require.NoError(t, err)
	return string(b)
}

// The page names tests behind their packages, "redislock, etcdlock `TestX`", or in front,
// "`TestX` of redislock and etcdlock"; semicolons and the bars of a table end that.
func TestTheTestsNamedByTheChoosingPageExist(t *testing.T) {
	page := choosing(t)
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

package main

import (
	"io/fs"
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

// guides returns the text of the pages for users.
func guides(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, fs.WalkDir(os.DirFS(filepath.Join("..", "..", "docs", "guides")), ".",
		func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", filepath.FromSlash(name)))
			all.Write(b)
			all.WriteByte('\n')
			return err
		}))
	return all.String()
}

// The pages name tests behind their packages, "redislock, etcdlock `TestX`", or in front,
// "`TestX` of redislock and etcdlock"; semicolons and the bars of a table end that.
func TestTheTestsNamedByTheGuidesExist(t *testing.T) {
	page := guides(t)
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

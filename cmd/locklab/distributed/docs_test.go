package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cmd/locklab/distributed/internal/scenarios"
	"github.com/jucgo/locks/cmd/locklab/internal/report"
)

func TestTheDocumentationIsUpToDate(t *testing.T) {
	docs, err := report.Docs(scenarios.Course)
	require.NoError(t, err)
	for name, want := range docs {
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", filepath.FromSlash(name)))
		require.NoError(t, err, "run: go run ./cmd/locklab/distributed docs docs")
		require.Equal(t, want, string(got), "%s; run: go run ./cmd/locklab/distributed docs docs", name)
		require.NotContains(t, want, "{{", "there are no figures in the chapters")
	}
	// The chapters of both courses are in one folder, so that none may have another's name.
	for _, s := range scenarios.Course.All() {
		chapter, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "lab", s.Name+".md"))
		require.NoError(t, err)
		require.True(t, strings.Contains(string(chapter), scenarios.Course.Folder), s.Name)
	}
}

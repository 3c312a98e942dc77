package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// A fullOnly is a line of .ci/full: tests of a module that the full run has and the gate has not.
type fullOnly struct {
	module  string // or the folder of a package
	pattern string // for go test -skip
	reason  string
}

// readFull reads .ci/full. A line has a module, a pattern and a reason, with colons and spaces
// between them.
func readFull(folder string) ([]fullOnly, error) {
	text, err := os.ReadFile(filepath.Join(folder, ".ci", "full"))
	if err != nil {
		return nil, err
	}
	var lines []fullOnly
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " : ", 3)
		if len(fields) < 3 {
			return nil, fmt.Errorf(".ci/full: %q has no module, pattern and reason", line)
		}
		lines = append(lines, fullOnly{strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1]), strings.TrimSpace(fields[2])})
	}
	return lines, nil
}

// skip returns the arguments of go test that leave out what the full run alone tests of a module.
func (c *ci) skip(module string) ([]string, error) {
	if c.full {
		return nil, nil
	}
	lines, err := readFull(c.folder)
	if err != nil {
		return nil, err
	}
	var patterns []string
	for _, l := range lines {
		if c.moduleOf(l.module) == module {
			patterns = append(patterns, l.pattern)
		}
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	return []string{"-skip=" + wholeFirst(patterns)}, nil
}

// wholeFirst joins patterns for go test -skip, those with the fewest slashes first. The first
// alternative that may match decides: behind ^Test/MySQL, which names subtests of all tests, a test
// that ^TestMain$ names would run.
func wholeFirst(patterns []string) string {
	type alternative struct {
		pattern string
		slashes int
	}
	var all []alternative
	for _, p := range patterns {
		from, slashes, nested := 0, 0, 0
		for i, c := range p + "|" {
			switch {
			case c == '(' || c == '[':
				nested++
			case c == ')' || c == ']':
				nested--
			case nested > 0:
			case c == '/':
				slashes++
			case c == '|':
				all = append(all, alternative{p[from:i], slashes})
				from, slashes = i+1, 0
			}
		}
	}
	slices.SortStableFunc(all, func(a, b alternative) int { return cmp.Compare(a.slashes, b.slashes) })
	var sorted []string
	for _, a := range all {
		sorted = append(sorted, a.pattern)
	}
	return strings.Join(sorted, "|")
}

// moduleOf returns the module of a folder, which may be a package of the module.
func (c *ci) moduleOf(folder string) string {
	for module := folder; ; module = path.Dir(module) {
		if module == "." || slices.ContainsFunc(c.work.Modules, func(m *workspace.Module) bool { return m.Dir == module }) {
			return module
		}
	}
}

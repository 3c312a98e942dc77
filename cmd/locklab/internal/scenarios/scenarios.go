// Package scenarios has the lessons of the lab, one in each file.
//
// To add one, add a file that registers a lab.Scenario; the file's name is the scenario's, with
// underscores for hyphens. The lines between "//lab:show" and "//lab:end" are what the reader
// is shown as the code of the scenario.
package scenarios

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

//go:embed *.go
var sources embed.FS

var all []*lab.Scenario

func register(s lab.Scenario) bool {
	all = append(all, &s)
	return true
}

// All returns the scenarios in the order of the lessons.
func All() []*lab.Scenario {
	slices.SortStableFunc(all, func(a, b *lab.Scenario) int { return a.Lesson - b.Lesson })
	return slices.Clone(all)
}

// Find returns the scenario of that name.
func Find(name string) (*lab.Scenario, bool) {
	i := slices.IndexFunc(all, func(s *lab.Scenario) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// File returns the name of the file that a scenario is in.
func File(s *lab.Scenario) string { return strings.ReplaceAll(s.Name, "-", "_") + ".go" }

const (
	showFrom = "//lab:show"
	showTo   = "//lab:end"
)

// Code returns the lines of a scenario that the reader is shown.
func Code(s *lab.Scenario) (string, error) {
	source, err := sources.ReadFile(File(s))
	if err != nil {
		return "", fmt.Errorf("the source of %s: %w", s.Name, err)
	}
	var parts []string
	var part strings.Builder
	inside, indent := false, ""
	for line := range strings.Lines(string(source)) {
		switch text := strings.TrimSpace(line); {
		case text == showFrom:
			inside, indent = true, line[:strings.Index(line, showFrom)]
		case text == showTo:
			parts = append(parts, strings.Trim(part.String(), "\n"))
			part.Reset()
			inside = false
		case inside:
			part.WriteString(strings.TrimPrefix(line, indent))
		}
	}
	if inside || len(parts) == 0 {
		return "", fmt.Errorf("%s has no complete %s ... %s", File(s), showFrom, showTo)
	}
	return strings.Join(parts, "\n\n"), nil
}

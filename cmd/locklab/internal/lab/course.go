package lab

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Course has the scenarios of a command of the lab, and the words around them.
type Course struct {
	Name    string // of the command
	Command string // to start it, from the top of the repository
	Title   Text
	Lead    Text   // what the page says of it first
	Lane    Text   // what a lane of a timeline is, as the beginning of a sentence
	Page    string // the file that the page goes to if no other is given
	Index   string // the chapter of the documentation that lists the others
	Intro   Text   // of that chapter
	Folder  string // of the scenarios' sources, from the top of the repository
	Sources fs.FS  // the files there

	scenarios []*Scenario
}

// Register adds a scenario. It returns true, so that it can be called where a package is
// initialised.
func (c *Course) Register(s Scenario) bool {
	for _, text := range []*Text{&s.Claim, &s.Look, &s.Found, &s.Take} {
		text.ZH = Joined(text.ZH)
	}
	c.scenarios = append(c.scenarios, &s)
	slices.SortStableFunc(c.scenarios, func(a, b *Scenario) int { return a.Lesson - b.Lesson })
	return true
}

// All returns the scenarios in the order of the lessons.
func (c *Course) All() []*Scenario { return slices.Clone(c.scenarios) }

// Find returns the scenario of that name.
func (c *Course) Find(name string) (*Scenario, bool) {
	i := slices.IndexFunc(c.scenarios, func(s *Scenario) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return c.scenarios[i], true
}

// File returns the name of the file that a scenario is in.
func (s *Scenario) File() string { return strings.ReplaceAll(s.Name, "-", "_") + ".go" }

const (
	showFrom = "//lab:show"
	showTo   = "//lab:end"
)

// Code returns the lines of a scenario that the reader is shown: the lines between "//lab:show" and
// "//lab:end". Three dots stand between the lines of two files.
func (c *Course) Code(s *Scenario) (string, error) {
	files := s.Shown
	if len(files) == 0 {
		files = []string{s.File()}
	}
	var parts []string
	for _, file := range files {
		shown, err := c.shown(file)
		if err != nil {
			return "", fmt.Errorf("the source of %s: %w", s.Name, err)
		}
		parts = append(parts, shown)
	}
	return strings.Join(parts, "\n\n...\n\n"), nil
}

// shown returns the lines of a file that the reader is shown.
func (c *Course) shown(file string) (string, error) {
	source, err := fs.ReadFile(c.Sources, file)
	if err != nil {
		return "", err
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
		return "", fmt.Errorf("%s has no complete %s ... %s", file, showFrom, showTo)
	}
	return strings.Join(parts, "\n\n"), nil
}

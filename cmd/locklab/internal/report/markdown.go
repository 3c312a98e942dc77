package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/cmd/locklab/internal/scenarios"
)

// Index is the name of the chapter that lists the others.
const Index = "lab.md"

// Docs returns the chapters of the documentation by file name. They come from the same texts as the
// page, and have no figures.
func Docs() (map[string]string, error) {
	all := scenarios.All()
	docs := map[string]string{}
	var index strings.Builder
	index.WriteString(`# The lock lab

Each chapter is a scenario of the lab: it runs on the real locks of this module, checks what it
teaches, and fails if what it sees contradicts the text. The figures are those of your machine:

` + "```sh\ngo run ./cmd/locklab            # all of them, and a page with pictures\ngo run ./cmd/locklab run race   # one of them\n```\n")
	topic := ""
	for i, s := range all {
		if s.Topic != topic {
			topic = s.Topic
			fmt.Fprintf(&index, "\n## %s\n\n", topic)
		}
		fmt.Fprintf(&index, "- [%s](%s.md): %s\n", s.Title, s.Name, s.Question)
		chapter, err := chapter(all, i)
		if err != nil {
			return nil, err
		}
		docs[s.Name+".md"] = chapter
	}
	docs[Index] = index.String()
	return docs, nil
}

func chapter(all []*lab.Scenario, i int) (string, error) {
	s := all[i]
	code, err := scenarios.Code(s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Made by: go run ./cmd/locklab docs docs. The source is cmd/locklab/internal/scenarios/%s. -->\n\n", scenarios.File(s))
	fmt.Fprintf(&b, "# %s\n\n*%s*\n\n%s\n\n", s.Title, s.Question, s.Claim)
	fmt.Fprintf(&b, "## See it\n\n```sh\ngo run ./cmd/locklab run %s\n```\n\n%s\n\n", s.Name, s.Look)
	fmt.Fprintf(&b, "## The lines that do it\n\n```go\n%s\n```\n\nIn Java:\n\n```java\n%s\n```\n\n", code, s.Java)
	fmt.Fprintf(&b, "## What follows\n\n%s\n\n", s.Take)
	var links []string
	if i > 0 {
		links = append(links, fmt.Sprintf("Before: [%s](%s.md)", all[i-1].Title, all[i-1].Name))
	}
	links = append(links, "[All chapters]("+Index+")")
	if i < len(all)-1 {
		links = append(links, fmt.Sprintf("Next: [%s](%s.md)", all[i+1].Title, all[i+1].Name))
	}
	b.WriteString(strings.Join(links, " · ") + "\n")
	return b.String(), nil
}

// WriteDocs writes the chapters to a directory, which it makes if need be, and returns how many
// there are.
func WriteDocs(dir string) (int, error) {
	docs, err := Docs()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	for name, text := range docs {
		path := filepath.Join(dir, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			return 0, err
		}
	}
	return len(docs), nil
}

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// Docs returns the chapters of the documentation by file name. They come from the same texts as
// the page, and have no figures.
func Docs(course *lab.Course) (map[string]string, error) {
	all := course.All()
	docs := map[string]string{}
	var index strings.Builder
	some := course.Command + " run " + all[0].Name
	fmt.Fprintf(&index, "# %s\n\n%s\n\n```sh\n%-*s   # all of them, and a page with pictures\n%s   # one "+
		"of them\n```\n",
		course.Title, paragraphs(course.Intro), len(some), course.Command, some)
	topic := ""
	for i, s := range all {
		if s.Topic != topic {
			topic = s.Topic
			fmt.Fprintf(&index, "\n## %s\n\n", topic)
		}
		fmt.Fprintf(&index, "- [%s](%s.md): %s\n", s.Title, s.Name, s.Question)
		chapter, err := chapter(course, i)
		if err != nil {
			return nil, err
		}
		docs[s.Name+".md"] = chapter
	}
	docs[course.Index] = index.String()
	return docs, nil
}

func chapter(course *lab.Course, i int) (string, error) {
	all := course.All()
	s := all[i]
	code, err := course.Code(s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Made by: %s docs docs/lab\n", course.Command)
	fmt.Fprintf(&b, "     Source: %s/%s -->\n\n", course.Folder, s.File())
	fmt.Fprintf(&b, "# %s\n\n*%s*\n\n%s\n\n", s.Title, s.Question, paragraphs(s.Claim))
	fmt.Fprintf(&b, "## See it\n\n```sh\n%s run %s\n```\n\nThe command writes a page, "+
		"which has the tables and pictures of this text.\n\n%s\n\n", course.Command, s.Name, paragraphs(s.Look))
	fmt.Fprintf(&b, "## The lines that do it\n\n```go\n%s\n```\n\nIn Java:\n\n```java\n%s\n```\n\n", code, s.Java)
	fmt.Fprintf(&b, "## What follows\n\n%s\n\n", paragraphs(s.Take))
	var links []string
	if i > 0 {
		links = append(links, fmt.Sprintf("Before: [%s](%s.md)", all[i-1].Title, all[i-1].Name))
	}
	links = append(links, "[All chapters]("+course.Index+")")
	if i < len(all)-1 {
		links = append(links, fmt.Sprintf("Next: [%s](%s.md)", all[i+1].Title, all[i+1].Name))
	}
	b.WriteString(strings.Join(links, " · ") + "\n")
	return b.String(), nil
}

// paragraphs wraps the lines of each paragraph of a text.
func paragraphs(text string) string {
	all := strings.Split(text, "\n\n")
	for i, p := range all {
		all[i] = strings.TrimSuffix(Wrap(p, 0), "\n")
	}
	return strings.Join(all, "\n\n")
}

// WriteDocs writes the chapters to a directory, which it makes if need be, and returns how many
// there are.
func WriteDocs(course *lab.Course, dir string) (int, error) {
	docs, err := Docs(course)
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

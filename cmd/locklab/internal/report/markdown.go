package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// folders are where the chapters are, below the documentation, by language.
var folders = map[lab.Lang]string{lab.English: "lab", lab.Chinese: "zh/lab"}

// translation is a link from a chapter to the same chapter in the other language.
var translation = map[lab.Lang]string{
	lab.English: "[简体中文](../zh/lab/%s)", lab.Chinese: "[English](../../lab/%s)",
}

// Docs returns the chapters of the documentation, in both languages, by file name. They come from
// the same texts as the page, without figures.
func Docs(course *lab.Course) (map[string]string, error) {
	docs := map[string]string{}
	for _, lang := range lab.Langs {
		all := course.All()
		var index strings.Builder
		command := course.Command + flagOf(lang)
		some := command + " run " + all[0].Name
		fmt.Fprintf(&index, "<!-- Made by: %s docs docs -->\n\n", course.Command)
		fmt.Fprintf(&index, "# %s\n\n%s\n\n%s\n\n```sh\n%-*s   # %s\n%s   # %s\n```\n", course.Title.In(lang),
			fmt.Sprintf(translation[lang], course.Index), paragraphs(course.Intro, lang), len(some), command,
			lab.T("all of them, and a page with pictures", "全部场景，并写出带图的网页").In(lang),
			some, lab.T("one of them", "其中一个").In(lang))
		topic := lab.Text{}
		for i, s := range all {
			if s.Topic != topic {
				topic = s.Topic
				fmt.Fprintf(&index, "\n## %s\n\n", topic.In(lang))
			}
			index.WriteString(lab.T("- [%s](%s.md): %s\n",
				"- [%s](%s.md)：%s\n").With(s.Title, s.Name, s.Question).In(lang))
			chapter, err := chapter(course, i, lang)
			if err != nil {
				return nil, err
			}
			docs[path.Join(folders[lang], s.Name+".md")] = chapter
		}
		docs[path.Join(folders[lang], course.Index)] = index.String()
	}
	return docs, nil
}

// flagOf is the flag by which the command speaks a language.
func flagOf(lang lab.Lang) string {
	if lang == lab.English {
		return ""
	}
	return " -lang " + string(lang)
}

func chapter(course *lab.Course, i int, lang lab.Lang) (string, error) {
	all := course.All()
	s := all[i]
	code, err := course.Code(s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Made by: %s docs docs\n", course.Command)
	fmt.Fprintf(&b, "     Source: %s/%s -->\n\n", course.Folder, s.File())
	fmt.Fprintf(&b, "# %s\n\n%s\n\n*%s*\n\n%s\n\n", s.Title.In(lang), fmt.Sprintf(translation[lang], s.Name+".md"),
		s.Question.In(lang), paragraphs(s.Claim, lang))
	fmt.Fprintf(&b, "## %s\n\n```sh\n%s run %s\n```\n\n%s\n\n%s\n\n", lab.T("See it", "亲眼看看").In(lang),
		course.Command+flagOf(lang), s.Name,
		paragraphs(lab.T("The command writes a page, which has the tables and pictures of this text.",
			"这条命令会写出一个网页，本文提到的表格和图都在其中。"), lang), paragraphs(s.Look, lang))
	fmt.Fprintf(&b, "## %s\n\n```go\n%s\n```\n\n%s\n\n```java\n%s\n```\n\n",
		lab.T("The lines that do it", "关键代码").In(lang), code, lab.T("In Java:", "Java 的写法：").In(lang), s.Java.In(lang))
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", lab.T("What follows", "结论").In(lang), paragraphs(s.Take, lang))
	var links []string
	link := func(text lab.Text, to *lab.Scenario) {
		links = append(links, text.With(to.Title, to.Name).In(lang))
	}
	if i > 0 {
		link(lab.T("Before: [%s](%s.md)", "上一章：[%s](%s.md)"), all[i-1])
	}
	links = append(links, "["+lab.T("All chapters", "全部章节").In(lang)+"]("+course.Index+")")
	if i < len(all)-1 {
		link(lab.T("Next: [%s](%s.md)", "下一章：[%s](%s.md)"), all[i+1])
	}
	b.WriteString(strings.Join(links, " · ") + "\n")
	return b.String(), nil
}

// paragraphs wraps the lines of each paragraph of a text. Chinese paragraphs are one line each, as
// the end of a line becomes a space on a page.
func paragraphs(text lab.Text, lang lab.Lang) string {
	if lang == lab.Chinese {
		return lab.Joined(text.In(lang))
	}
	all := strings.Split(text.In(lang), "\n\n")
	for i, p := range all {
		all[i] = strings.TrimSuffix(wrapped(p, 0, pageWidth), "\n")
	}
	return strings.Join(all, "\n\n")
}

// pageWidth is how many columns the text of a chapter takes at most.
const pageWidth = 92

// WriteDocs writes the chapters to a directory, which it makes if need be, and returns how many
// there are.
func WriteDocs(course *lab.Course, dir string) (int, error) {
	docs, err := Docs(course)
	if err != nil {
		return 0, err
	}
	for name, text := range docs {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return 0, err
		}
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

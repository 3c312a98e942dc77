package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// A term is a word of docs/guides/glossary.md with the words that Chinese pages use for it.
type term struct {
	word    string
	chinese []string
}

// pattern matches the forms of t in English text.
func (t term) pattern() *regexp.Regexp {
	last := t.word[len(t.word)-1:]
	stem := regexp.QuoteMeta(strings.TrimSuffix(t.word, "e"))
	return regexp.MustCompile(`(?i)(?:^|[^\w.-])` + stem + `(?:e|es|s|ed|d|ing|` + last + `ing|` + last + `ed)?` +
		`(?:[^\w.(-]|\.(?:\s|$)|$)`)
}

// A word stands for one thing in both languages.
func TestChinesePagesUseTheWordsOfTheGlossary(t *testing.T) {
	_, all := pages(t)
	texts := map[string]page{}
	for _, p := range all {
		texts[p.name] = p
	}
	terms, avoided := glossary(texts["docs/guides/glossary.md"].text)
	if len(terms) < 40 || len(avoided) < 15 {
		t.Fatalf("the glossary has %d terms with Chinese words, and %d words to avoid", len(terms), len(avoided))
	}
	n := 0
	for _, chinese := range all {
		name, ok := original(chinese.name)
		english, found := texts[name]
		if !ok || !found || chinese.name == "docs/zh/README.md" {
			continue // another test finds a translation of nothing, and an index has pages of its own
		}
		n++
		for _, fault := range misused(english, chinese, terms, avoided) {
			t.Errorf("%s: %s", chinese.name, fault)
		}
	}
	if n < 4 {
		t.Fatalf("only %d translations", n)
	}
}

func TestAWrongWordIsFound(t *testing.T) {
	terms, avoided := glossary("| term | 中文 | meaning |\n| --- | --- | --- |\n| lease | 租约 | a |\n" +
		"| renew, extend | 续期、续租；延长 | b |\n| rules | （规则） | c |\n| spin | 自旋 | d |\n\n" +
		"| 不用 | 用 |\n| --- | --- |\n| 租期 | 租约 |\n| 唤醒 | 虚假唤醒 |\n")
	english := page{"docs/a.md", "A lease is renewed. The rules of `spin.Mutex`, and a [word](extended.md)."}
	if got := misused(english, page{"docs/zh/a.md", "租约会续租。虚假唤醒"}, terms, avoided); len(got) > 0 {
		t.Errorf("the right words are refused: %q", got)
	}
	for _, wrong := range []string{"期限会续租。", "租约会延长。", "租约会续租。租期", "租约会续租。伪唤醒"} {
		if len(misused(english, page{"docs/zh/a.md", wrong}, terms, avoided)) == 0 {
			t.Errorf("%s is accepted", wrong)
		}
	}
	spinning := page{"docs/a.md", "It goes on spinning."}
	if len(misused(spinning, page{"docs/zh/a.md", "它继续旋转。"}, terms, avoided)) == 0 {
		t.Error("another form of a term is not found")
	}
}

// The lab tests its own texts by a list of words. The glossary has the same Chinese words.
func TestTheLabAndTheGlossaryHaveTheSameWords(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(w.Folder, filepath.FromSlash(name)))
		must(t, err)
		return string(text)
	}
	terms, _ := glossary(read("docs/guides/glossary.md"))
	list := regexp.MustCompile("(?m)^\t\\{`([^`]+)`, `([^`]+)`\\},$").
		FindAllStringSubmatch(read("cmd/locklab/internal/lab/labtest/terms.go"), -1)
	if len(list) < 20 {
		t.Fatalf("the lab has %d words only", len(list))
	}
	for _, entry := range list {
		forms := strings.Split(entry[2], "|")
		if !slices.ContainsFunc(terms, func(of term) bool {
			return slices.ContainsFunc(of.chinese, func(word string) bool {
				return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(word, form) })
			})
		}) {
			t.Errorf("the lab says %s for %s, and the glossary has no such word", entry[2], entry[1])
		}
	}
}

// glossary returns the terms of a glossary that have Chinese words, and the words to avoid with the
// words to use.
func glossary(text string) (terms []term, avoided [][2]string) {
	var header string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 2 {
			header = ""
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case header == "":
			header = cells[1]
		case cells[0] == "---":
		case header == "用":
			avoided = append(avoided, [2]string{cells[0], cells[1]})
		case header == "中文":
			words, chinese := strings.Split(cells[0], ", "), strings.Split(cells[1], "；")
			for i, word := range words {
				of := chinese[len(chinese)-1]
				if len(chinese) == len(words) {
					of = chinese[i]
				}
				if !strings.HasPrefix(of, "（") {
					terms = append(terms, term{word, strings.Split(of, "、")})
				}
			}
		}
	}
	return terms, avoided
}

// misused returns the terms of the English page for which the Chinese page has no word of the
// glossary, and the words in the page that it must avoid.
func misused(english, chinese page, terms []term, avoided [][2]string) (all []string) {
	text := func(p page) string { return targets.ReplaceAllString(comments.ReplaceAllString(p.prose(), ""), "]") }
	from, to := text(english), text(chinese)
	for _, of := range terms {
		if of.pattern().MatchString(from) &&
			!slices.ContainsFunc(of.chinese, func(word string) bool { return strings.Contains(to, word) }) {
			all = append(all, fmt.Sprintf("%s of %s is %s", of.word, english.name, strings.Join(of.chinese, " or ")))
		}
	}
	for _, pair := range avoided {
		if strings.Contains(strings.ReplaceAll(to, pair[1], ""), pair[0]) {
			all = append(all, pair[0]+" is "+pair[1])
		}
	}
	return all
}

package docs

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A translation that lags behind is worse than none. A Chinese page has a comment with a sum of the
// English text that it says. The sum is new when the English text is, and then the test fails until
// the Chinese text and the comment follow.
func TestChinesePagesSayWhatTheEnglishPagesSay(t *testing.T) {
	_, all := pages(t)
	texts := map[string]page{}
	for _, p := range all {
		texts[p.name] = p
	}
	n := 0
	for _, chinese := range all {
		name, ok := original(chinese.name)
		if !ok || chinese.name == "docs/zh/README.md" || generated(chinese) {
			continue // the index has pages of its own, and the lab tests its pages
		}
		n++
		english, found := texts[name]
		if !found {
			t.Errorf("%s translates %s, which does not exist", chinese.name, name)
			continue
		}
		for _, difference := range differences(english, chinese) {
			t.Errorf("%s: %s", chinese.name, difference)
		}
	}
	if n < 1 {
		t.Fatal("no translations")
	}
}

func TestATranslationThatLagsBehindIsFound(t *testing.T) {
	english := page{"docs/a.md", "# Title\n\n[中文](zh/a.md)\n\nA lease of 30 s, `New` and `Do`.\n\n" +
		"```go\nx()\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"}
	right := "# 标题\n\n[English](../a.md)\n\n租约 30 s，`Do` 和 `New`。\n\n```go\nx()\n```\n\n" +
		"| 甲 | 乙 |\n| --- | --- |\n| 1 | 2 |\n\n![图](../a.png)\n\n" + english.mark() + "\n"
	if got := differences(english, page{"docs/zh/a.md", right}); len(got) > 0 {
		t.Errorf("the right translation differs: %q", got)
	}
	for _, change := range [][2]string{
		{"30 s", "20 s"},                // a number
		{"`New`", "`Now`"},              // a name
		{"x()", "y()"},                  // a program
		{"# 标题", "## 标题"},               // a level
		{"| 1 | 2 |\n", ""},             // a row
		{"[English](../a.md)", ""},      // the link
		{"<!-- says ", "<!-- says 0"},   // the sum
		{"租约 30 s，", "租约30 s，"},         // a space
		{"租约 30 s，", "租约 30 s, "},       // punctuation
		{"`Do` 和 `New`", "`Do`和 `New`"}, // a space beside code
		{"和 `New`。", "和 `New`."},        // a full stop
		{"租约 30 s", "租约 (默认) 30 s"},     // brackets
	} {
		text := strings.Replace(right, change[0], change[1], 1)
		if text == right {
			t.Fatalf("%q changes nothing", change)
		}
		if len(differences(english, page{"docs/zh/a.md", text})) == 0 {
			t.Errorf("%q is not found", change)
		}
	}
	changed := page{english.name, strings.Replace(english.text, "A lease", "The lease", 1)}
	if len(differences(changed, page{"docs/zh/a.md", right})) == 0 {
		t.Error("a changed sentence is not found")
	}
}

// A reader of Chinese stays in Chinese where there is a page. The link to the original is for those
// who want it.
func TestChinesePagesLinkChinesePages(t *testing.T) {
	_, all := pages(t)
	for _, fault := range strayed(all) {
		t.Error(fault)
	}
}

func TestALinkIntoTheOtherLanguageIsFound(t *testing.T) {
	all := []page{
		{"README.md", ""},
		{"docs/a.md", "[b](b.md)"},
		{"docs/b.md", ""},
		{"docs/c.md", ""},
		{"docs/zh/a.md", "[English](../a.md) [b](b.md) [c](../c.md)"},
		{"docs/zh/b.md", "[English](../b.md) [a](../a.md#part)"},
		{"README.zh-CN.md", "[English](README.md) [b](docs/b.md) [c](docs/c.md)"},
	}
	want := []string{"docs/zh/b.md links docs/a.md, and there is docs/zh/a.md",
		"README.zh-CN.md links docs/b.md, and there is docs/zh/b.md"}
	if got := strayed(all); !slices.Equal(got, want) {
		t.Errorf("the links are %q", got)
	}
}

// strayed returns the links of Chinese pages to English pages that have a translation.
func strayed(all []page) (faults []string) {
	chinese := map[string]string{}
	for _, p := range all {
		if of, ok := original(p.name); ok {
			chinese[of] = p.name
		}
	}
	for _, p := range all {
		own, ok := original(p.name)
		if !ok {
			continue
		}
		for _, l := range p.links() {
			if to, _ := l.target(p.name); to != own && chinese[to] != "" {
				faults = append(faults, fmt.Sprintf("%s links %s, and there is %s", p.name, to, chinese[to]))
			}
		}
	}
	return faults
}

// original returns the name of the English page of a Chinese one.
func original(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "docs/zh/"); ok {
		return "docs/" + rest, true
	}
	if rest, ok := strings.CutSuffix(name, ".zh-CN.md"); ok {
		return rest + ".md", true
	}
	return "", false
}

// generated reports whether a command has written p.
func generated(p page) bool { return strings.HasPrefix(p.text, "<!-- Made by: ") }

// mark returns the comment that ends a translation of p. It has a sum of the text, without the
// targets of links and without white space.
func (p page) mark() string {
	text := links.ReplaceAllString(p.text, "]()")
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	return fmt.Sprintf("<!-- says %x of %s -->", sum[:6], p.name)
}

// differences returns the differences between a translation and its original that can be counted,
// and the places where its text breaks the rules of Chinese typography.
func differences(english, chinese page) (all []string) {
	if !strings.Contains(chinese.text, english.mark()) {
		all = append(all, fmt.Sprintf("if the text says the same as %s today, end it with %s",
			english.name, english.mark()))
	}
	for _, pair := range [][2]page{{english, chinese}, {chinese, english}} {
		if !slices.ContainsFunc(pair[0].links(), func(l link) bool {
			to, _ := l.target(pair[0].name)
			return to == pair[1].name
		}) {
			all = append(all, fmt.Sprintf("%s does not link %s", pair[0].name, pair[1].name))
		}
	}
	for what, pattern := range map[string]string{
		"blocks of code":       "(?ms)^```.*?^```$",
		"levels of headings":   `(?m)^#+ `,
		"columns of tables":    `(?m)^\|( --- \|)+$`,
		"beginnings of rows":   `(?m)^\| `,
		"points of lists":      `(?m)^(?:-|\d+\.) `,
		"numbered notes":       `[¹²³⁴⁵⁶]`,
		"programs that it has": `<!-- \S+\.go -->`,
	} {
		find := regexp.MustCompile(pattern).FindAllString
		if want, got := find(english.text, -1), find(chinese.text, -1); !slices.Equal(want, got) {
			all = append(all, fmt.Sprintf("its %s are not those of the original: %q, not %q", what, got, want))
		}
	}
	for what, count := range map[string]func(page) map[string]int{"names in code": names, "numbers": numbers} {
		want, got := count(english), count(chinese)
		keys := slices.Collect(maps.Keys(want))
		for k := range got {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range slices.Compact(keys) {
			if want[k] != got[k] {
				all = append(all, fmt.Sprintf("%s: %s is there %d times, and %d times in the original",
					what, k, got[k], want[k]))
			}
		}
	}
	return append(all, typography(chinese)...)
}

// names counts the code within sentences.
func names(p page) map[string]int {
	n := map[string]int{}
	for _, code := range spans.FindAllStringSubmatch(blocks.ReplaceAllString(p.text, ""), -1) {
		n[code[1]]++
	}
	return n
}

var (
	comments = regexp.MustCompile(`(?s)<!--.*?-->`)
	number   = regexp.MustCompile(`\d(?:[\d.,]*\d)?`)
	targets  = regexp.MustCompile(`\]\([^)\s]*\)`)
)

// numbers counts the numbers of the text.
func numbers(p page) map[string]int {
	text := targets.ReplaceAllString(comments.ReplaceAllString(p.prose(), ""), "]")
	n := map[string]int{}
	for _, s := range number.FindAllString(text, -1) {
		n[s]++
	}
	return n
}

// typography returns where a Chinese text breaks its rules: punctuation is of full width, and a
// space is between a Chinese character and a Latin letter, a digit or code.
func typography(p page) (all []string) {
	text := comments.ReplaceAllString(blocks.ReplaceAllString(p.text, ""), "")
	text = targets.ReplaceAllString(spans.ReplaceAllString(text, "`x`"), "]")
	text = strings.NewReplacer("![", "", "[", "", "]", "", "**", "").Replace(text)
	for _, rule := range []struct{ what, pattern string }{
		{"a space is missing", `\p{Han}[A-Za-z0-9` + "`" + `]|[A-Za-z0-9%` + "`" + `]\p{Han}`},
		{"punctuation is of half width", `(?:\p{Han}|` + "`" + `)[,;:!?.](?:\s|$)|` +
			`\p{Han}[,;:!?()]|[()]\p{Han}|\p{Han} \(|[,;:!?] ?(?:\p{Han}|` + "`" + `)`},
		{"a space is beside punctuation", `[，。；：！？、（）] +[^|\s]|[^|\s.] +[，。；：！？、（）]`},
	} {
		at := regexp.MustCompile(`(?m).{0,8}(?:` + rule.pattern + `).{0,8}`)
		for _, s := range at.FindAllString(text, -1) {
			all = append(all, fmt.Sprintf("%s: %s", rule.what, s))
		}
	}
	return all
}

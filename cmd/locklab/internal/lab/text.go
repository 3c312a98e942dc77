package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/jucgo/locks/internal/terminal"
)

// Lang is a language of the lab.
type Lang string

// The languages. The page shows them in this order.
const (
	English Lang = "en"
	Chinese Lang = "zh"
)

// Langs are all languages.
var Langs = []Lang{English, Chinese}

// LangOf returns the language that an environment asks for, as getenv tells: the first of LC_ALL,
// LC_MESSAGES and LANG that is set decides.
func LangOf(getenv func(string) string) Lang {
	if terminal.Chinese(getenv) {
		return Chinese
	}
	return English
}

// Text is a text in both languages.
type Text struct{ EN, ZH string }

// T returns a text and its translation. They stand side by side in the source, and a test reads
// them there: both are constants, with the same figures, verbs and names in code.
func T(en, zh string) Text { return Text{en, zh} }

// Same returns a text without a translation: a name, a figure, or the output of a program.
func Same(text string) Text { return Text{text, text} }

// In returns the text in a language.
func (t Text) In(lang Lang) string {
	if lang == Chinese {
		return t.ZH
	}
	return t.EN
}

// String returns the English text.
func (t Text) String() string { return t.EN }

// IsZero reports whether the text is missing.
func (t Text) IsZero() bool { return t == Text{} }

// With formats a text in both languages, as fmt.Sprintf does. An argument that is a Text or a
// Failure stands for its words in the language. In Chinese, spaces are put where names meet words.
func (t Text) With(args ...any) Text {
	in := func(lang Lang) string {
		own := make([]any, len(args))
		for i, arg := range args {
			own[i] = arg
			switch arg := arg.(type) {
			case Text:
				own[i] = arg.In(lang)
			case error:
				own[i] = Explain(arg, lang)
			}
		}
		return fmt.Sprintf(t.In(lang), own...)
	}
	return Text{in(English), Spaced(in(Chinese))}
}

// Join joins texts, in each language by the words of that language.
func Join(all []Text, between Text) Text {
	var en, zh []string
	for _, t := range all {
		en, zh = append(en, t.EN), append(zh, t.ZH)
	}
	return Text{strings.Join(en, between.EN), Spaced(strings.Join(zh, between.ZH))}
}

// MarshalJSON writes the English text: the JSON report is for programs, and has one language.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.EN) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Text) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, &t.EN)
	t.ZH = t.EN
	return err
}

// Failure is an error with words in both languages.
type Failure struct {
	Text
	Cause error
}

// Fail returns a Failure. Its cause is the last argument that is an error.
func Fail(t Text, args ...any) *Failure {
	f := &Failure{Text: t.With(args...)}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			f.Cause = err
		}
	}
	return f
}

// Error returns the English words.
func (f *Failure) Error() string { return f.EN }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Explain returns what an error says in a language. Errors of the locks themselves are in English.
func Explain(err error, lang Lang) string {
	var f *Failure
	if errors.As(err, &f) {
		return f.In(lang)
	}
	return err.Error()
}

// Han reports whether r is a Chinese character, without punctuation.
func Han(r rune) bool { return unicode.Is(unicode.Han, r) }

// Wide reports whether a terminal gives r two columns: Chinese characters and full-width
// punctuation.
func Wide(r rune) bool { return terminal.Wide(r) }

// Columns returns how many columns of a terminal a text takes.
func Columns(text string) int { return terminal.Columns(text) }

// Joined removes the ends of lines inside paragraphs of a Chinese text. Where words of another
// alphabet meet, a space remains.
func Joined(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	all := strings.Split(text, "\n\n")
	for i, paragraph := range all {
		var b strings.Builder
		last := rune(0)
		for line := range strings.SplitSeq(paragraph, "\n") {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			first := []rune(line)[0]
			if last != 0 && !punctuation(last) && !punctuation(first) && !(Han(last) && Han(first)) {
				b.WriteByte(' ')
			}
			b.WriteString(line)
			runes := []rune(line)
			last = runes[len(runes)-1]
		}
		all[i] = b.String()
	}
	return strings.Join(all, "\n\n")
}

// punctuation reports whether r is full-width punctuation, which stands for a space too.
func punctuation(r rune) bool { return Wide(r) && !Han(r) }

var (
	hanThenWord = regexp.MustCompile(`(\p{Han})([A-Za-z0-9%µ+-])`)
	wordThenHan = regexp.MustCompile(`([A-Za-z0-9%µ+)])(\p{Han})`)
	hanSpaceHan = regexp.MustCompile(`(\p{Han}) +(\p{Han})`)
	besideMarks = regexp.MustCompile(` *([，。：；？！、（）「」《》]) *`)
)

// Spaced puts a space where Chinese characters meet letters, digits and code, and nowhere else. The
// text of code in backquotes stays as it is.
func Spaced(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		p := parts[i]
		p = hanThenWord.ReplaceAllString(p, "$1 $2")
		p = wordThenHan.ReplaceAllString(p, "$1 $2")
		p = hanSpaceHan.ReplaceAllString(p, "$1$2")
		p = besideMarks.ReplaceAllString(p, "$1")
		if i > 0 && startsWith(p, Han) {
			p = " " + p
		}
		if i < len(parts)-1 && endsWith(p, Han) {
			p += " "
		}
		parts[i] = p
	}
	return strings.Join(parts, "`")
}

func startsWith(text string, is func(rune) bool) bool {
	for _, r := range text {
		return is(r)
	}
	return false
}

func endsWith(text string, is func(rune) bool) bool {
	runes := []rune(text)
	return len(runes) > 0 && is(runes[len(runes)-1])
}

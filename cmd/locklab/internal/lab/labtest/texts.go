package labtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// Pair is a text of the source, and its translation beside it.
type Pair struct {
	lab.Text
	At string // the file and the line
}

// inTemplate finds the pairs of a template.
var inTemplate = regexp.MustCompile(`\(?T ("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")`)

// Pairs returns all texts that the Go files and templates of some folders have, in the order of the
// files. Tests have texts of their own.
func Pairs(t *testing.T, folders ...string) (all []Pair) {
	t.Helper()
	for _, folder := range folders {
		for _, pattern := range []string{"*.go", "*.tmpl"} {
			files, err := filepath.Glob(filepath.Join(folder, pattern))
			require.NoError(t, err)
			for _, file := range files {
				switch {
				case strings.HasSuffix(file, "_test.go"):
				case strings.HasSuffix(file, ".go"):
					all = append(all, pairsOf(t, file)...)
				default:
					text, err := os.ReadFile(file)
					require.NoError(t, err)
					for _, m := range inTemplate.FindAllStringSubmatch(string(text), -1) {
						en, err := strconv.Unquote(m[1])
						require.NoError(t, err)
						zh, err := strconv.Unquote(m[2])
						require.NoError(t, err)
						all = append(all, Pair{lab.Text{EN: en, ZH: zh}, file})
					}
				}
			}
		}
	}
	return all
}

func pairsOf(t *testing.T, file string) (all []Pair) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isT(call.Fun) {
			return true
		}
		if of, ok := call.Args[0].(*ast.Ident); ok && of.Name == "en" {
			return true // the function of templates, whose texts are in the templates
		}
		at := files.Position(call.Pos()).String()
		var words []string
		for _, arg := range call.Args {
			text, ok := constant(arg)
			require.True(t, ok, "%s: a text is a constant, so that its translation can be compared", at)
			words = append(words, text)
		}
		require.NotEmpty(t, words, at)
		pair := Pair{lab.Text{EN: words[0]}, at}
		if len(words) > 1 {
			pair.Text = lab.Text{EN: words[0], ZH: lab.Joined(words[1])}
		}
		all = append(all, pair)
		return true
	})
	return all
}

// isT reports whether a call is one of lab.T, by that name or inside package lab.
func isT(function ast.Expr) bool {
	switch f := function.(type) {
	case *ast.Ident:
		return f.Name == "T"
	case *ast.SelectorExpr:
		of, ok := f.X.(*ast.Ident)
		return ok && of.Name == "lab" && f.Sel.Name == "T"
	}
	return false
}

// constant returns the value of a string that is written in the source.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, ok := constant(e.X)
		b, also := constant(e.Y)
		return a + b, ok && also && e.Op == token.ADD
	}
	return "", false
}

var (
	verb   = regexp.MustCompile(`%(?:\[(\d+)\])?([-+# 0]*\d*(?:\.\d+)?[a-zA-Z])`)
	action = regexp.MustCompile(`\{\{[^}]*\}\}`)
	code   = regexp.MustCompile("`[^`]*`")
	digits = regexp.MustCompile(`\d+`)
)

// insertions returns what a text takes from a run or must keep: verbs with the argument that each
// takes, actions of a template, code, and figures.
func insertions(text string) (all []string) {
	next := 0
	for _, m := range verb.FindAllStringSubmatch(strings.ReplaceAll(text, "%%", ""), -1) {
		next++
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1]) // The pattern has digits only.
		}
		all = append(all, fmt.Sprintf("argument %d as %s", next, m[2]))
	}
	text = verb.ReplaceAllString(text, "")
	for _, pattern := range []*regexp.Regexp{action, code, digits} {
		all = append(all, pattern.FindAllString(text, -1)...)
		text = pattern.ReplaceAllString(text, "")
	}
	slices.Sort(all)
	return all
}

// alternatives are parts of which a run shows one: both may have a text that a page has once.
var alternatives = regexp.MustCompile(`\{\{-? ?(if|else|end)[^}]*\}\}`)

// Style returns what is wrong with a Chinese text: half-width punctuation beside Chinese characters,
// a missing space between them and letters or digits, or a space too many.
func Style(zh string) (faults []string) {
	// A run fills in a figure or a word.
	plain := action.ReplaceAllString(alternatives.ReplaceAllString(zh, ""), "1")
	plain = code.ReplaceAllString(plain, "`x`")
	if figures := verb.ReplaceAllString(plain, "1"); strings.ContainsAny(plain, "%") {
		// A verb may stand for Chinese words, so a text with verbs may leave the space to With.
		plain = figures
	} else if got := lab.Spaced(plain); strings.TrimSpace(got) != strings.TrimSpace(plain) {
		faults = append(faults, fmt.Sprintf("spaces: %q should be %q", plain, got))
	}
	for _, m := range halfWidth.FindAllString(plain, -1) {
		faults = append(faults, "half-width punctuation: "+m)
	}
	return faults
}

var halfWidth = regexp.MustCompile(`\p{Han}[,;:?!()"']|[,;?!("']\p{Han}|\p{Han}\.(\s|$)|--|\.\.\.\p{Han}`)

// Translated checks the texts of some folders: each has a translation with the same figures, verbs and
// names, in the style of Chinese. The file records which text each translation belongs to. If only
// the English text changes, its translation may say something else by now.
func Translated(t *testing.T, record string, folders ...string) {
	t.Helper()
	if os.Getenv("LOCKLAB_TRANSLATED") != "" {
		var all []lab.Text
		for _, p := range Pairs(t, folders...) {
			all = append(all, p.Text)
		}
		require.NoError(t, os.WriteFile(record, []byte(Record(all)), 0o666))
	}
	for _, fault := range Faults(t, record, folders...) {
		assert.Fail(t, fault)
	}
}

// Record returns the lines that say which texts belong together.
func Record(texts []lab.Text) string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, hash(text.ZH)+" "+hash(text.EN)+"\n")
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// Faults returns what is wrong with the texts of some folders and their record.
func Faults(t *testing.T, record string, folders ...string) (faults []string) {
	t.Helper()
	fault := func(p Pair, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: %s\n%s\n%s", p.At, fmt.Sprintf(format, args...), p.EN, p.ZH))
	}
	pairs := Pairs(t, folders...)
	var texts []lab.Text
	seen := map[string]string{}
	for _, p := range pairs {
		texts = append(texts, p.Text)
		if p.ZH == "" {
			fault(p, "no translation")
			continue
		}
		if en, zh := insertions(p.EN), insertions(p.ZH); !slices.Equal(en, zh) {
			fault(p, "one has %q, and the other one %q", en, zh)
		}
		for _, f := range append(Style(p.ZH), Terms(p.Text)...) {
			fault(p, "%s", f)
		}
		if old, ok := seen[p.EN]; ok && len(p.EN) > 24 && old != p.ZH {
			fault(p, "another translation of it is %q", old)
		}
		seen[p.EN] = p.ZH
	}
	got, err := os.ReadFile(record)
	require.NoError(t, err)
	recorded := strings.ReplaceAll(string(got), "\r\n", "\n")
	if want := Record(texts); recorded == want {
		return faults
	}
	for _, p := range pairs {
		if !strings.Contains(recorded, Record([]lab.Text{p.Text})) && strings.Contains(recorded, hash(p.ZH)) {
			fault(p, "the English text changed, and its translation did not")
		}
	}
	return append(faults, "texts changed: read each changed pair again in both languages. Then run the test with "+
		"LOCKLAB_TRANSLATED=1 in the environment, which writes "+record)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// prose is a text that is more than a name: two words of small letters in a row.
var prose = regexp.MustCompile(`\b[a-z]{2,} [a-z]{2,}\b`)

// Untranslated returns the texts of a result that are the same in both languages and are more than
// names. The output of programs is in English.
func Untranslated(r *lab.Result) (all []string) {
	for _, text := range Texts(r) {
		said := strings.Contains(text.EN, ".go:") // a program, of its lines
		if text.EN == text.ZH && !said && prose.MatchString(code.ReplaceAllString(text.EN, "")) {
			all = append(all, text.EN)
		}
	}
	return all
}

// Texts returns all texts of a result.
func Texts(r *lab.Result) (all []lab.Text) {
	all = append(all, r.Title, r.Found)
	for _, c := range r.Checks {
		all = append(all, c.Text)
	}
	for _, t := range r.Timelines {
		all = append(all, t.Title, t.Desc)
		for _, lane := range t.Lanes {
			all = append(all, lane.Name)
			for _, s := range lane.Spans {
				all = append(all, s.Label)
			}
			for _, m := range lane.Marks {
				all = append(all, m.Label)
			}
		}
	}
	for _, c := range r.Charts {
		all = append(all, c.Title, c.Desc, c.X.Label, c.Y.Label)
		all = append(all, c.X.Ticks...)
		for _, s := range c.Series {
			all = append(all, s.Name)
		}
	}
	for _, table := range r.Tables {
		all = append(append(all, table.Title), table.Head...)
		for _, row := range table.Rows {
			all = append(all, row...)
		}
	}
	for _, q := range r.Quotes {
		all = append(all, q.Title, q.Desc)
	}
	return all
}

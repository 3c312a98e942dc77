package report

import (
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"html/template"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

//go:embed page.tmpl
var pageText string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"css": func() template.CSS { return template.CSS(pageCSS) },
	"js":  func() template.JS { return template.JS(pageJS) },
	"inc": func(i int) int { return i + 1 },
}).Funcs(wordsIn(lab.English)).Parse(pageText))

// bodies are the templates of the page's content, in each language.
var bodies = func() map[lab.Lang]*template.Template {
	all := map[lab.Lang]*template.Template{}
	for _, lang := range lab.Langs {
		all[lang] = template.Must(page.Clone()).Funcs(wordsIn(lang))
	}
	return all
}()

// wordsIn are the functions of the template that write words. T has a text and its translation side
// by side, and t writes a text that the report has.
func wordsIn(lang lab.Lang) template.FuncMap {
	return template.FuncMap{
		"T":            func(en, zh string) string { return lab.T(en, zh).In(lang) },
		"t":            func(text lab.Text) string { return text.In(lang) },
		"prose":        func(text lab.Text) template.HTML { return prose(text.In(lang)) },
		"golang":       highlight,
		"timeline":     func(id string, t *lab.Timeline) template.HTML { return TimelineSVG(id, t, lang) },
		"marks":        func(t *lab.Timeline) []string { return Marks(t, lang) },
		"chart":        func(id string, c lab.Chart) template.HTML { return ChartSVG(id, c, lang) },
		"swatch":       Swatch,
		"stateSwatch":  StateSwatch,
		"dur":          lab.Duration,
		"machine":      Machine,
		"day":          func(at time.Time) string { return at.Format("2006-01-02 15:04") },
		"timelineGrid": func(t *lab.Timeline) grid { return timelineGrid(t, lang) },
		"chartGrid":    func(c lab.Chart) grid { return chartGrid(c, lang) },
		"tableGrid":    func(t lab.Table) grid { return tableGrid(t, lang) },
	}
}

// section is a scenario on the page.
type section struct {
	*lab.Scenario
	Result *lab.Result
	ID     string // on the page, where each language has its own
	Number int
	Code   string
	// NewTopic tells that the scenario is the first of its topic.
	NewTopic bool
}

// view is the page in one language.
type view struct {
	*Report
	Course   *lab.Course
	In       lab.Lang
	Tag      string // the language, as HTML names it
	Prefix   string // of the ids
	Other    lab.Lang
	OtherTag string
	Sections []section
	States   []legend
}

// tags name the languages for a browser.
var tags = map[lab.Lang]string{lab.English: "en", lab.Chinese: "zh-Hans"}

// HTML writes the report as one page that needs nothing else. It has both languages, and shows one.
func (r *Report) HTML(w io.Writer) error {
	var all []template.HTML
	first := view{}
	for _, lang := range lab.Langs {
		v := view{Report: r, Course: r.course, In: lang, Tag: tags[lang], States: states, Other: lab.Chinese}
		if lang == lab.Chinese {
			v.Prefix, v.Other = "zh-", lab.English
		}
		v.OtherTag = tags[v.Other]
		for i, result := range r.Scenarios {
			s, ok := r.course.Find(result.Name)
			if !ok {
				return fmt.Errorf("the page: no scenario %q", result.Name)
			}
			code, err := r.course.Code(s)
			if err != nil {
				return fmt.Errorf("the page: %w", err)
			}
			v.Sections = append(v.Sections, section{Scenario: s, Result: result, ID: v.Prefix + s.Name, Number: i + 1,
				Code: code, NewTopic: i == 0 || v.Sections[i-1].Topic != s.Topic})
		}
		var b strings.Builder
		if err := bodies[lang].ExecuteTemplate(&b, "body", v); err != nil {
			return fmt.Errorf("the page: %w", err)
		}
		all = append(all, template.HTML(b.String()))
		if lang == r.Lang || lang == lab.English {
			first = v
		}
	}
	err := bodies[first.In].Execute(w, struct {
		view
		Bodies []template.HTML
	}{first, all})
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	return nil
}

type legend struct {
	State      lab.State
	Name, Text lab.Text
}

// states are all states, as legends explain them.
var states = []legend{
	{lab.Running, lab.T("running", "运行"), lab.T("works, and holds nothing", "在工作，不持有任何锁")},
	{lab.Waiting, lab.T("waiting", "等待"), lab.T("for a lock, a signal or a value", "等待锁、信号或值")},
	{lab.Shared, lab.T("holding, shared", "共享持有"), lab.T("others may be in there, too", "其他持有者也可以在内")},
	{lab.Exclusive, lab.T("holding, alone", "独占持有"), lab.T("no other holder", "没有其他持有者")},
}

// quantity is a figure and its unit, between which no line should end.
var quantity = regexp.MustCompile(`(\d) (ns\b|µs\b|ms\b|s\b|%|[kMG]\b)`)

// prose makes HTML of a text with paragraphs and `code`.
func prose(text string) template.HTML {
	var b strings.Builder
	for _, paragraph := range strings.Split(text, "\n\n") {
		if strings.TrimSpace(paragraph) == "" {
			continue
		}
		b.WriteString("<p>")
		for i, part := range strings.Split(paragraph, "`") {
			if i%2 == 1 {
				b.WriteString("<code>" + esc(part) + "</code>")
			} else {
				b.WriteString(esc(quantity.ReplaceAllString(part, "$1\u00a0$2")))
			}
		}
		b.WriteString("</p>\n")
	}
	return template.HTML(b.String())
}

// highlight makes HTML of Go code.
func highlight(code string) template.HTML {
	var b strings.Builder
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(code))
	s.Init(file, []byte(code), func(token.Position, string) {}, scanner.ScanComments)
	last := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		class := ""
		switch {
		case tok == token.COMMENT:
			class = "c"
		case tok == token.STRING || tok == token.INT || tok == token.FLOAT || tok == token.CHAR:
			class = "v"
		case tok.IsKeyword():
			class = "k"
		}
		if class == "" {
			continue
		}
		at := file.Offset(pos)
		b.WriteString(esc(code[last:at]))
		last = at + len(lit)
		b.WriteString(`<span class="` + class + `">` + esc(code[at:last]) + `</span>`)
	}
	b.WriteString(esc(code[last:]))
	return template.HTML(b.String())
}

// grid is a table on the page.
type grid struct {
	Name  string
	Head  []string
	Rows  [][]string
	Class string
}

// Column is the name of a column, if it has one.
func (g grid) Column(i int) string {
	if i < len(g.Head) {
		return g.Head[i]
	}
	return ""
}

// class tells from how many columns on the rows of a table become cards where the table does not
// fit. On phones three columns do not fit. More than four columns do not fit beside a picture
// either.
func class(columns int) string {
	switch {
	case columns > 4:
		return "cards many"
	case columns > 2:
		return "cards"
	}
	return ""
}

func tableGrid(t lab.Table, lang lab.Lang) grid {
	g := grid{Name: t.Title.In(lang), Head: in(lang, t.Head), Class: class(len(t.Head))}
	for _, row := range t.Rows {
		g.Rows = append(g.Rows, in(lang, row))
	}
	return g
}

// in returns texts in a language.
func in(lang lab.Lang, texts []lab.Text) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = t.In(lang)
	}
	return all
}

// dataOf names the data of a picture.
var dataOf = lab.T("Data of %s", "「%s」的数据")

func chartGrid(c lab.Chart, lang lab.Lang) grid {
	head := []string{c.X.Label.In(lang)}
	for _, s := range c.Series {
		head = append(head, s.Name.In(lang))
	}
	return grid{Name: dataOf.With(c.Title).In(lang), Head: head, Rows: chartRows(c, lang), Class: class(len(head))}
}

// timelineGrid is the content of a timeline's lanes. It has many short rows, which do not become
// cards.
func timelineGrid(t *lab.Timeline, lang lab.Lang) grid {
	g := grid{Name: dataOf.With(t.Title).In(lang), Head: in(lang, []lab.Text{lab.T("who",
		"谁"), lab.T("what", "做什么"),
		lab.T("from", "始于"), lab.T("for", "持续")})}
	for _, lane := range t.Lanes {
		name := lane.Name.In(lang)
		for _, s := range lane.Spans {
			g.Rows = append(g.Rows, []string{name, s.Label.In(lang), lab.Duration(s.From), lab.Duration(s.Length())})
		}
		for _, m := range lane.Marks {
			g.Rows = append(g.Rows, []string{name, m.Label.In(lang), lab.Duration(m.At), ""})
		}
	}
	return g
}

// chartRows are the data of a chart as a table: a line for each x.
func chartRows(c lab.Chart, lang lab.Lang) [][]string {
	c = measured(c)
	var xs []float64
	cells := map[float64][]string{}
	for i, s := range c.Series {
		for _, p := range s.Points {
			if cells[p.X] == nil {
				cells[p.X] = make([]string, len(c.Series))
				xs = append(xs, p.X)
			}
			cells[p.X][i] = c.Y.Unit.Format(p.Y)
		}
	}
	rows := make([][]string, 0, len(xs))
	for _, x := range xs {
		name := c.X.Unit.Format(x)
		if c.Bars {
			name = place(c.X, x).In(lang)
		}
		rows = append(rows, append([]string{name}, cells[x]...))
	}
	return rows
}

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

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

//go:embed page.tmpl
var pageText string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"prose":        prose,
	"golang":       highlight,
	"timeline":     TimelineSVG,
	"chart":        ChartSVG,
	"swatch":       Swatch,
	"stateSwatch":  StateSwatch,
	"dur":          lab.Duration,
	"timelineGrid": timelineGrid,
	"chartGrid":    chartGrid,
	"tableGrid":    tableGrid,
	"css":          func() template.CSS { return template.CSS(pageCSS) },
	"js":           func() template.JS { return template.JS(pageJS) },
	"inc":          func(i int) int { return i + 1 },
}).Parse(pageText))

// section is a scenario on the page.
type section struct {
	*lab.Scenario
	Result *lab.Result
	Number int
	Code   string
	// NewTopic tells that the scenario is the first of its topic.
	NewTopic bool
}

// HTML writes the report as one page that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	sections := make([]section, 0, len(r.Scenarios))
	for i, result := range r.Scenarios {
		s, ok := r.course.Find(result.Name)
		if !ok {
			return fmt.Errorf("the page: no scenario %q", result.Name)
		}
		code, err := r.course.Code(s)
		if err != nil {
			return fmt.Errorf("the page: %w", err)
		}
		sections = append(sections, section{Scenario: s, Result: result, Number: i + 1, Code: code,
			NewTopic: i == 0 || sections[i-1].Topic != s.Topic})
	}
	err := page.Execute(w, struct {
		*Report
		Course   *lab.Course
		Sections []section
		States   []legend
	}{r, r.course, sections, []legend{
		{lab.Running, "running", "works, and holds nothing"},
		{lab.Waiting, "waiting", "for a lock, a signal or a value"},
		{lab.Shared, "holding, shared", "others may be in there, too"},
		{lab.Exclusive, "holding, alone", "no other holder"},
	}})
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	return nil
}

type legend struct {
	State      lab.State
	Name, Text string
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

// class tells from how many columns on the rows of a table become cards where it has no room: of three on phones, of
// more than four also where two pictures stand side by side.
func class(columns int) string {
	switch {
	case columns > 4:
		return "cards many"
	case columns > 2:
		return "cards"
	}
	return ""
}

func tableGrid(t lab.Table) grid {
	return grid{Name: t.Title, Head: t.Head, Rows: t.Rows, Class: class(len(t.Head))}
}

func chartGrid(c lab.Chart) grid {
	head := []string{c.X.Label}
	for _, s := range c.Series {
		head = append(head, s.Name)
	}
	return grid{Name: "Data of " + c.Title, Head: head, Rows: chartRows(c), Class: class(len(head))}
}

// timelineGrid is what is in the lanes of a timeline. It has many short rows, which do not become cards.
func timelineGrid(t *lab.Timeline) grid {
	g := grid{Name: "Data of " + t.Title, Head: []string{"who", "what", "from", "for"}}
	for _, lane := range t.Lanes {
		for _, s := range lane.Spans {
			g.Rows = append(g.Rows, []string{lane.Name, s.Label, lab.Duration(s.From), lab.Duration(s.Length())})
		}
		for _, m := range lane.Marks {
			g.Rows = append(g.Rows, []string{lane.Name, m.Label, lab.Duration(m.At), ""})
		}
	}
	return g
}

// chartRows are the data of a chart as a table: a line for each x.
func chartRows(c lab.Chart) [][]string {
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
			name = place(c.X, x)
		}
		rows = append(rows, append([]string{name}, cells[x]...))
	}
	return rows
}

package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// width is how many columns the text for terminals takes at most.
const width = 80

// The columns of a verdict that the title begins at, and that it has.
const (
	titleAt   = 22
	titleRoom = 43
)

// Verdict is the line about a scenario. The rest of a long title is in a line of its own.
func Verdict(r *lab.Result, lang lab.Lang) string {
	sign := "ok"
	switch {
	case r.OutOfTime:
		sign = "TIME"
	case !r.OK:
		sign = "FAIL"
	case r.Open():
		sign = "OPEN"
	}
	held := 0
	for _, c := range r.Checks {
		if c.OK && !c.Open {
			held++
		}
	}
	title := strings.Split(strings.TrimSuffix(wrapped(r.Title.In(lang), 0, titleRoom), "\n"), "\n")
	line := fmt.Sprintf("%s  %s %s %2d/%-2d %s\n", padded(sign, 4), padded(r.Name, titleAt-7),
		padded(title[0], titleRoom),
		held, len(r.Checks), lab.Duration(r.Elapsed.Round(time.Millisecond)))
	for _, rest := range title[1:] {
		line += strings.Repeat(" ", titleAt) + rest + "\n"
	}
	return line
}

// padded returns text with spaces behind it, up to so many columns.
func padded(text string, columns int) string {
	return text + strings.Repeat(" ", max(columns-lab.Columns(text), 0))
}

// Text writes what a scenario found for a terminal. With pictures it draws its timelines.
func Text(w io.Writer, r *lab.Result, lang lab.Lang, pictures bool) error {
	var b strings.Builder
	b.WriteString(Verdict(r, lang))
	for _, c := range r.Checks {
		switch {
		case c.Open:
			b.WriteString(Wrap(lab.T("not judged: %s", "未判定：%s").With(c.Text).In(lang), 6))
			b.WriteString(Wrap(c.Why.In(lang), 8))
		case !c.OK:
			why := lab.T("contradicted: %s", "与所教不符：%s")
			if r.OutOfTime {
				why = lab.T("ran out of time: %s", "超时：%s")
			}
			b.WriteString(Wrap(why.With(c.Text).In(lang), 6))
			b.WriteString(Wrap(c.Got.In(lang), 8))
		}
	}
	b.WriteString(indented(r.Error.In(lang), 6))
	for paragraph := range strings.SplitSeq(r.Found.In(lang), "\n\n") {
		b.WriteString(Wrap(paragraph, 6))
	}
	if r.Busy.TooBig || pictures {
		b.WriteString(Wrap(Machine(r).In(lang), 6))
	}
	if pictures {
		for _, t := range r.Timelines {
			b.WriteString("\n" + drawn(t, lang))
		}
		for _, q := range r.Quotes {
			b.WriteString("\n      " + q.Title.In(lang) + "\n" + indented(q.Text, 8))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// indented keeps the lines of text as they are.
func indented(text string, indent int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(strings.Repeat(" ", indent)+line, " \t\r\n") + "\n")
	}
	return b.String()
}

var shades = map[lab.State]rune{lab.Running: '·', lab.Waiting: '░', lab.Shared: '▒', lab.Exclusive: '█'}

// drawn draws a timeline with characters. Where a lane changes faster than characters can show,
// the state that took most of the character's time is shown.
func drawn(t *lab.Timeline, lang lab.Lang) string {
	var b strings.Builder
	names := 0
	for _, lane := range t.Lanes {
		names = max(names, lab.Columns(lane.Name.In(lang)))
	}
	cells := width - 6 - names - 2
	b.WriteString(Wrap(lab.T("%s (%s)", "%s（%s）").With(t.Title, lab.Duration(t.Length)).In(lang), 6))
	if t.Length <= 0 {
		return b.String()
	}
	for _, lane := range t.Lanes {
		b.WriteString("      " + padded(lane.Name.In(lang), names) + "  ")
		for i := range cells {
			from, to := t.Length*time.Duration(i)/time.Duration(cells), t.Length*time.Duration(i+1)/time.Duration(cells)
			share := map[lab.State]time.Duration{}
			best := lab.State("")
			for _, s := range lane.Spans {
				if d := min(s.To, to) - max(s.From, from); d > 0 {
					if share[s.State] += d; best == "" || share[s.State] > share[best] {
						best = s.State
					}
				}
			}
			if best == "" {
				b.WriteByte(' ')
			} else {
				b.WriteRune(shades[best])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Legend explains the characters.
func Legend(lang lab.Lang) string {
	var all []string
	for _, state := range states {
		all = append(all, string(shades[state.State])+" "+state.Name.In(lang))
	}
	return "      " + strings.Join(all, "   ") + "\n"
}

// Wrap breaks text into indented lines, between words and between Chinese characters.
func Wrap(text string, indent int) string { return wrapped(text, indent, width) }

// wrapped is Wrap for lines of at most so many columns. A longer word has a line of its own.
func wrapped(text string, indent, width int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		for i, piece := range pieces(word) {
			space := 0
			if i == 0 && column > 0 {
				space = 1
			}
			n := lab.Columns(piece)
			if column > 0 && column+space+n > width {
				b.WriteByte('\n')
				column = 0
			}
			if column == 0 {
				b.WriteString(strings.Repeat(" ", indent))
				column, space = indent, 0
			}
			b.WriteString(strings.Repeat(" ", space) + piece)
			column += space + n
		}
	}
	if column > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// pieces returns the parts of a word between which a line may end. That is behind a Chinese
// character or full-width punctuation, but not before punctuation that closes, nor behind
// punctuation that opens.
func pieces(word string) (all []string) {
	const opens, closes = "（「《“", "，。：；？！、）」》”"
	from, last := 0, rune(0)
	for i, r := range word {
		if i > 0 && (lab.Wide(last) || lab.Wide(r)) && !strings.ContainsRune(closes, r) &&
			!strings.ContainsRune(opens, last) {
			all = append(all, word[from:i])
			from = i
		}
		last = r
	}
	return append(all, word[from:])
}

package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// width is that of the text for terminals.
const width = 92

// Verdict is the line about a scenario.
func Verdict(r *lab.Result) string {
	sign := "ok  "
	if !r.OK {
		sign = "FAIL"
		if r.OutOfTime {
			sign = "TIME"
		}
	}
	held := 0
	for _, c := range r.Checks {
		if c.OK {
			held++
		}
	}
	return fmt.Sprintf("%s  %-15s %-58s %2d/%-2d %7s\n", sign, r.Name, r.Title, held, len(r.Checks),
		lab.Duration(r.Elapsed.Round(time.Millisecond)))
}

// Text writes what a scenario found for a terminal. With pictures it draws its timelines.
func Text(w io.Writer, r *lab.Result, pictures bool) error {
	var b strings.Builder
	b.WriteString(Verdict(r))
	why := "contradicted"
	if r.OutOfTime {
		why = "ran out of time"
	}
	for _, c := range r.Checks {
		if !c.OK {
			b.WriteString(Wrap(why+": "+c.Text, 6))
			if c.Got != "" {
				b.WriteString(Wrap(c.Got, 8))
			}
		}
	}
	b.WriteString(indented(r.Error, 6))
	b.WriteString(Wrap(r.Found, 6))
	if pictures {
		for _, t := range r.Timelines {
			b.WriteString("\n" + drawn(t))
		}
		for _, q := range r.Quotes {
			b.WriteString("\n      " + q.Title + "\n" + indented(q.Text, 8))
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
func drawn(t *lab.Timeline) string {
	var b strings.Builder
	names := 0
	for _, lane := range t.Lanes {
		names = max(names, utf8.RuneCountInString(lane.Name))
	}
	cells := width - 6 - names - 2
	fmt.Fprintf(&b, "      %s (%s)\n", t.Title, lab.Duration(t.Length))
	if t.Length <= 0 {
		return b.String()
	}
	for _, lane := range t.Lanes {
		fmt.Fprintf(&b, "      %s%s  ", lane.Name, strings.Repeat(" ", names-utf8.RuneCountInString(lane.Name)))
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
const Legend = "      · running   ░ waiting   ▒ holding, shared   █ holding, alone\n"

// Wrap breaks text into indented lines.
func Wrap(text string, indent int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if column > 0 && column+1+n > width {
			b.WriteByte('\n')
			column = 0
		}
		if column == 0 {
			b.WriteString(strings.Repeat(" ", indent))
			column = indent
		} else {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	if column > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

package explore

import (
	"fmt"
	"strings"
)

// report returns the finding for a person: its kind, the schedule as a table, and how to replay it.
func (r result) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "explore: %v\n\n", r.finding)
	if r.strayed {
		b.WriteString(strays + "\n\n")
	}
	r.run.table(&b)
	list := r.replay()
	fmt.Fprintf(&b, "\nfound in schedule %d. To replay it, add this option to Run:\n\texplore.Replay(%q)\n",
		r.schedules, list)
	switch {
	case r.from != "":
		fmt.Fprintf(&b, "The schedule was in %s.\n", r.from)
	case r.to != "":
		fmt.Fprintf(&b, "The next run tries it first: it is in %s.\n", r.to)
	}
	return b.String()
}

// replay returns the schedule of the finding for Replay.
func (r result) replay() string {
	list := schedule(r.list) + " " + r.horizon.String()
	if r.strayed {
		list += " " + repeated
	}
	return strings.TrimSpace(list)
}

// ends is how many rows of the beginning, and how many of the end, a table has of a long run.
const ends = 200

// table writes the events, with a column for each goroutine that has run. A long run, such as one
// without an end, is written in part.
func (x *X) table(b *strings.Builder) {
	all := x.all()
	width := make([]int, len(all))
	cells := make([]string, len(x.events))
	for i, e := range x.events {
		if e.time {
			cells[i] = "(time passes)"
			continue
		}
		cells[i] = e.String()
		width[e.who] = max(width[e.who], len([]rune(cells[i])))
	}
	line := func(n string, who int, text string) {
		s := fmt.Sprintf("%4s  ", n)
		for i, g := range all {
			if width[i] == 0 {
				continue
			}
			cell := ""
			switch {
			case who < 0:
				cell = x.title(g)
			case who == i:
				cell = text
			}
			s += fmt.Sprintf("%-*s  ", max(width[i], len(x.title(g))), cell)
		}
		b.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	line("step", -1, "")
	for i, e := range x.events {
		if left := len(x.events) - 2*ends; left > 0 && ends <= i && i < ends+left {
			if i == ends {
				fmt.Fprintf(b, " ...  %d more steps\n", left)
			}
			continue
		}
		if e.time {
			fmt.Fprintf(b, "%4d  %s\n", i+1, cells[i])
			continue
		}
		line(fmt.Sprint(i+1), e.who, cells[i])
	}
}

// String returns the text of an event in the table.
func (e event) String() string {
	s := e.op
	if e.woken {
		s = "goes on in " + s
	}
	if e.lock != nil && !strings.HasPrefix(e.op, "name ") {
		s += " " + e.lock.name
	}
	if line := lineOf(e.pcs); line != "" && e.op != startOp && e.op != happensOp {
		s += " " + line
	}
	switch {
	case e.failed:
		s += " fails"
	case e.waits:
		s += " waits"
	}
	return s
}

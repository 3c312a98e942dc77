package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jucgo/locks/internal/bench"
)

// writeTables writes what r says for people.
func writeTables(w io.Writer, r Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", machine(r), trust(r.Busy))
	for _, o := range r.Others {
		fmt.Fprintf(&b, "%s\n%s\n", afterwards(o), trust(o.Busy))
	}
	b.WriteString("\n")
	if len(r.Verdicts) > 0 {
		rows := [][]string{{"workload", "subject", "cost", "peer", "cost", "ratio", "target", ""}}
		for _, v := range r.Verdicts {
			missed := "missed"
			if v.Reached {
				missed = ""
			}
			rows = append(rows, []string{
				v.Workload, v.Subject, cost(v.Cost, v.Unit), v.Peer, cost(v.PeerCost, v.Unit),
				fmt.Sprintf("%.2f", v.Ratio), fmt.Sprintf("%.2f", v.Target), missed,
			})
		}
		b.WriteString("Worst first, by the ratio as a multiple of its target:\n\n" + align(rows) + "\n")
	}
	writePredictions(&b, r)
	for _, m := range r.Workloads {
		fmt.Fprintf(&b, "%s: %s\n", m.Name, m.About)
		if m.Busy.TooBig {
			fmt.Fprintf(&b, "Not to be trusted: others took %s of the processors meanwhile.\n", percent(m.Busy.Others))
		}
		var rows [][]string
		for _, f := range m.Subjects {
			rows = append(rows, []string{"  " + f.Name, cost(f.Median, m.Unit), "±" + percent(f.spread())})
		}
		b.WriteString(align(rows) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// machine says where the figures are from.
func machine(r Report) string {
	processor := ""
	if r.Processor != "" {
		processor = r.Processor + ", "
	}
	return fmt.Sprintf("%s %s, %s%d processors, GOMAXPROCS %d, %d rounds, %.0f s",
		r.Go, r.Platform, processor, r.Processors, r.GOMAXPROCS, r.Rounds, r.Seconds)
}

// afterwards describes the measurement of locks of another language.
func afterwards(o Other) string {
	return fmt.Sprintf("Measured after these rounds, not in them, and with threads: %s, %.0f s", o.Versions, o.Seconds)
}

// trust says whether the machine was idle enough.
func trust(b bench.Busy) string {
	switch {
	case !b.Known:
		return "This system does not tell how much processor time others took: see to it that the machine is idle."
	case b.TooBig:
		return fmt.Sprintf("TOO BUSY TO TRUST: others took %s of all processors during the run, more than %s. "+
			"Run it again on an idle machine.", percent(b.Others), percent(bench.BusyLimit))
	}
	return fmt.Sprintf("Others took %s of all processors during the run.", percent(b.Others))
}

// cost formats a cost with as many digits as mean something.
func cost(x float64, unit string) string {
	switch {
	case x < 0.995:
		return fmt.Sprintf("%.2f %s", x, unit)
	case x < 99.95:
		return fmt.Sprintf("%.1f %s", x, unit)
	}
	return fmt.Sprintf("%.0f %s", x, unit)
}

func percent(x float64) string {
	if x > 0 && x < 0.095 {
		return fmt.Sprintf("%.1f%%", 100*x)
	}
	return fmt.Sprintf("%.0f%%", 100*x)
}

// align formats rows in columns: words to the left, figures to the right.
func align(rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	last := rows[len(rows)-1]
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i > 0 {
				line.WriteString("  ")
			}
			if figure := strings.Trim(last[i], "±"); figure != "" && figure[0] >= '0' && figure[0] <= '9' {
				line.WriteString(pad + c)
			} else {
				line.WriteString(c + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

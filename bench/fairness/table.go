package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jucgo/locks/internal/bench"
)

// width is what lines of text are wrapped to. The table is about as wide.
const width = 80

// The two locks whose figures the closing sentences are made of.
const (
	unfair   = bench.Reference
	fairLock = "fair.Mutex"
)

var columns = []string{"lock", "alone", "x", "contended", "x", "p50 wait", "p99 wait", "max wait", "Jain", "streak"}

// write writes the table and what follows from it.
func write(w io.Writer, s settings, rows []row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", platform())
	fmt.Fprintf(&b, "contended: %d goroutines, each %v with the lock and %v without, %d rounds\n\n",
		s.goroutines, s.inside, s.outside, s.rounds)

	reference := find(rows, unfair)
	cells := [][]string{columns}
	for i := range rows {
		r := &rows[i]
		cells = append(cells, []string{
			r.lock.Name,
			nanos(median(r.alone)),
			times(median(r.alone) / median(reference.alone)),
			nanos(median(r.contended)),
			times(median(r.contended) / median(reference.contended)),
			short(r.waits.Quantile(0.50)),
			short(r.waits.Quantile(0.99)),
			short(r.waits.Max()),
			fmt.Sprintf("%.2f", median(r.jain)),
			strconv.Itoa(r.streak),
		})
	}
	b.WriteString(align(cells))

	b.WriteString("\n" + wrap("alone, contended: ns an acquisition, the median of the rounds, and how many times "+
		unfair+"'s. wait: from calling Lock to having the lock; max is the longest of all. Jain: how evenly the "+
		"goroutines got the lock, from 1 (all as often) to "+
		fmt.Sprintf("%.2g", 1/float64(s.goroutines))+" (one alone). streak: most acquisitions in a row by one "+
		"goroutine while others waited."))
	for _, sentence := range sentences(find(rows, fairLock), reference) {
		b.WriteString("\n" + wrap(sentence))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func find(rows []row, name string) *row {
	return &rows[slices.IndexFunc(rows, func(r row) bool { return r.lock.Name == name })]
}

// sentences say in words what FIFO costs, and what it buys, by the figures of
// f, which is FIFO, and r, which is not.
func sentences(f, r *row) []string {
	cost := median(f.contended) - median(r.contended)
	ratio := median(f.contended) / median(r.contended)
	more := fmt.Sprintf("%s ns more", nanos(cost))
	if cost < 0 {
		more = fmt.Sprintf("%s ns less", nanos(-cost))
	}
	costs := fmt.Sprintf("What FIFO costs here: a contended acquisition of %s takes %s than one of %s (%s x), "+
		"an uncontended one %s instead of %s ns (%s x).",
		f.lock.Name, more, r.lock.Name, times(ratio),
		nanos(median(f.alone)), nanos(median(r.alone)), times(median(f.alone)/median(r.alone)))

	// What is no better for FIFO is not left out, but told as such.
	var gains, rest []string
	tell := func(better bool, text string) {
		if better {
			gains = append(gains, text)
		} else {
			rest = append(rest, text)
		}
	}
	mine, theirs := f.waits.Quantile(0.99), r.waits.Quantile(0.99)
	q := float64(max(theirs, 1)) / float64(max(mine, 1))
	how := "about as long"
	if q >= 1.05 {
		how = times(q) + " times shorter"
	} else if q <= 0.95 {
		how = times(1/q) + " times longer"
	}
	tell(q >= 1.05, fmt.Sprintf("a p99 wait %s (%s instead of %s)", how, short(mine), short(theirs)))
	fj, rj := fmt.Sprintf("%.2f", median(f.jain)), fmt.Sprintf("%.2f", median(r.jain))
	tell(fj > rj, fmt.Sprintf("a Jain index of %s instead of %s", fj, rj))
	tell(f.streak < r.streak, fmt.Sprintf("a longest streak past others of %d instead of %d", f.streak, r.streak))

	var buys string
	switch {
	case len(rest) == 0:
		buys = list(gains)
	case len(gains) == 0:
		buys = "nothing in this run, with " + list(rest)
	default:
		buys = list(gains) + ", but with " + list(rest)
	}
	return []string{costs, "What it buys: " + buys + "."}
}

// list joins items the way a sentence does.
func list(items []string) string {
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// median returns the median of xs, which must not be empty.
func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	n := len(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}

// nanos formats nanoseconds with as many digits as mean something.
func nanos(ns float64) string {
	if ns < 99.95 {
		return fmt.Sprintf("%.1f", ns)
	}
	return fmt.Sprintf("%.0f", ns)
}

// times formats a ratio.
func times(x float64) string {
	if x < 9.995 {
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// short formats d with two or three digits.
func short(d time.Duration) string {
	unit := time.Nanosecond
	for unit < time.Second && d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

// align formats cells in columns: the first to the left, the others to the right.
func align(cells [][]string) string {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, line := range cells {
		for i, c := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i == 0 {
				b.WriteString(c + pad)
			} else {
				b.WriteString("  " + pad + c)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// wrap breaks text into lines.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}

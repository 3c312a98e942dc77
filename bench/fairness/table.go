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

// width is the longest line of text. The table is about as wide.
const width = 80

// The two locks whose figures the closing sentences are made of.
const (
	unfair   = bench.Reference
	fairLock = "fair.Mutex"
)

var columns = []string{
	"lock", "alone", "x", "contended", "x", "waiting", "p50 wait", "p99 wait", "max wait", "Jain", "streak",
}

// write writes the table and the conclusions from it.
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
			percent(median(r.waiting)),
			short(r.waits.QuantileByTime(0.50)),
			short(r.waits.QuantileByTime(0.99)),
			short(r.waits.Max()),
			fmt.Sprintf("%.2f", median(r.jain)),
			strconv.Itoa(r.streak),
		})
	}
	b.WriteString(align(cells))

	b.WriteString("\n" + wrap("alone, contended: ns an acquisition, the median of the rounds, and how many times "+
		unfair+"'s. waiting: the share of their time that the goroutines spent in Lock. p50, p99 wait: half of "+
		"that time, and 99 % of it, was spent in waits of at most this length. A random moment of "+
		"waiting counts here, not a random acquisition: a goroutine that acquires the lock again and "+
		"again past all others makes no wait of theirs shorter. max wait: the longest of all. Jain: how "+
		"evenly the goroutines got the lock, from 1 (all as often) to "+
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

// sentences describe the cost and the benefit of FIFO, by the figures of f, which is FIFO, and r,
// which is not.
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

	// Figures that are worse for FIFO are told as well. Equal figures are left out.
	var gains, losses []string
	tell := func(what string, mine, theirs float64, format func(float64) string) {
		text := fmt.Sprintf("%s of %s instead of %s", what, format(mine), format(theirs))
		switch {
		case format(mine) == format(theirs) || mine >= 0.95*theirs && mine <= 1.05*theirs:
		case mine < theirs:
			gains = append(gains, text)
		default:
			losses = append(losses, text)
		}
	}
	duration := func(d float64) string { return short(time.Duration(d)) }
	tell("a median wait", float64(f.waits.QuantileByTime(0.50)), float64(r.waits.QuantileByTime(0.50)), duration)
	tell("a p99 wait", float64(f.waits.QuantileByTime(0.99)), float64(r.waits.QuantileByTime(0.99)), duration)
	tell("a longest wait", float64(f.waits.Max()), float64(r.waits.Max()), duration)
	tell("a share of time spent waiting", median(f.waiting), median(r.waiting), percent)
	// For Jain's index, the distance from 1 should be small.
	jain := func(x float64) string { return fmt.Sprintf("%.2f", 1-x) }
	tell("a Jain index", 1-median(f.jain), 1-median(r.jain), jain)
	tell("a longest streak past others", float64(f.streak), float64(r.streak), func(x float64) string {
		return strconv.Itoa(int(x))
	})

	buys := "nothing in this run"
	if len(gains) > 0 {
		buys = list(gains)
	}
	told := []string{costs, "What it buys: " + buys + "."}
	if len(losses) > 0 {
		told = append(told, "What is worse with it: "+list(losses)+".")
	}
	return told
}

// percent formats a share.
func percent(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }

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

// times formats a ratio. A small one keeps two digits: on a busy machine the reference may have had
// no processor in its time, and 0.00 tells nothing.
func times(x float64) string {
	switch {
	case x < 0.0995:
		return fmt.Sprintf("%.2g", x)
	case x < 9.995:
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

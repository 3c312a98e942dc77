package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Chart draws the workloads of one series as lines, one for each subject. Both axes are
// logarithmic: a line that rises by the same angle grows by the same factor.
type Chart struct {
	Name, About string
	Width       int
	Height      int
	Lines       []Line
	Columns     []Tick // sizes
	Rows        []Tick // costs
}

// Line is one subject in a [Chart].
type Line struct {
	Name   string
	Ours   bool
	Points string  // of an SVG polyline
	End    float64 // where the line ends, and its name is
}

// Tick is a label of an axis.
type Tick struct {
	At    float64
	Label string
}

// The size of a chart, in its own units, with room for labels on the left, on the right and below.
const (
	chartWidth, chartHeight = 900, 320
	marginLeft, marginRight = 110, 170
	marginBelow             = 30
)

// charts returns a chart for each series in r.
func charts(r Report) (cs []Chart) {
	for rest := r.Workloads; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Series == rest[0].Series {
			n++
		}
		if rest[0].Series != "" && n > 1 {
			cs = append(cs, chart(rest[:n]))
		}
		rest = rest[n:]
	}
	return cs
}

// chart draws ms, which belong to one series. A cost below low is drawn as low, since zero has no
// logarithm.
func chart(ms []Measured) Chart {
	const low = 0.1
	c := Chart{Name: ms[0].Series, About: ms[0].About, Width: chartWidth, Height: chartHeight}
	least, most := math.Inf(1), low
	for _, m := range ms {
		for _, f := range m.Subjects {
			least, most = min(least, max(low, f.Median)), max(most, f.Median)
		}
	}
	// The axis of costs goes from one power of ten to another.
	bottom, top := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	if bottom == top {
		top++
	}
	x := func(size int) float64 {
		first, last := math.Log(float64(ms[0].Size)), math.Log(float64(ms[len(ms)-1].Size))
		return marginLeft + (chartWidth-marginLeft-marginRight)*(math.Log(float64(size))-first)/max(last-first, 1e-9)
	}
	y := func(cost float64) float64 {
		return (chartHeight - marginBelow) * (top - math.Log10(max(low, cost))) / (top - bottom)
	}
	for e := bottom; e <= top; e++ {
		c.Rows = append(c.Rows, Tick{y(math.Pow(10, e)), cost(math.Pow(10, e), ms[0].Unit)})
	}
	for _, m := range ms {
		c.Columns = append(c.Columns, Tick{x(m.Size), fmt.Sprint(m.Size)})
	}
	names := make([]string, 0, len(ms[0].Subjects))
	for _, f := range ms[0].Subjects {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		line := Line{Name: name}
		var points []string
		for _, m := range ms {
			i := slices.IndexFunc(m.Subjects, func(f Figures) bool { return f.Name == name })
			if i < 0 {
				continue
			}
			line.Ours, line.End = m.Subjects[i].Ours, y(m.Subjects[i].Median)
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(m.Size), line.End))
		}
		line.Points = strings.Join(points, " ")
		c.Lines = append(c.Lines, line)
	}
	spread(c.Lines)
	return c
}

// spread moves the names of lines apart that end close to each other.
func spread(lines []Line) {
	const apart = 14
	byEnd := make([]*Line, len(lines))
	for i := range lines {
		byEnd[i] = &lines[i]
	}
	slices.SortStableFunc(byEnd, func(a, b *Line) int { return int(math.Copysign(1, a.End-b.End)) })
	for i := 1; i < len(byEnd); i++ {
		byEnd[i].End = max(byEnd[i].End, byEnd[i-1].End+apart)
	}
}

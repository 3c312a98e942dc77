package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// svg collects the text of a picture.
type svg struct{ strings.Builder }

func (s *svg) f(format string, args ...any) { fmt.Fprintf(&s.Builder, format, args...) }

func esc(text string) string { return html.EscapeString(text) }

// num writes a coordinate.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// The heights of a lane's parts.
const (
	laneHeight = 60
	barTop     = 18
	barHeight  = 22
	axisHeight = 26
	// assumed is a width in pixels. It decides which texts have room. On narrow screens, which have
	// the width narrow, marks have numbers instead, and their words are below the picture.
	assumed   = 700
	narrow    = 300
	perColumn = 7
)

// TimelineSVG draws t. Its x coordinates are percentages: it takes the width that it is given,
// and text stays as large as it is.
func TimelineSVG(id string, t *lab.Timeline, lang lab.Lang) template.HTML {
	var s svg
	height := len(t.Lanes)*laneHeight + axisHeight
	s.f(`<svg class="timeline" id="%s" width="100%%" height="%d" role="group" aria-labelledby="%s-t %s-d">`,
		id, height, id, id)
	s.f(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, esc(lab.T("Timeline: %s",
		"时间线：%s").With(t.Title).In(lang)), id,
		esc(t.Desc.In(lang)))
	length := max(float64(t.Length), 1)
	x := func(d time.Duration) float64 { return float64(d) / length * 100 }

	for _, tick := range ticks(0, length, 6) {
		at := tick / length * 100
		anchor := "middle"
		switch {
		case at < 2:
			anchor = "start"
		case at > 97:
			anchor = "end"
		}
		s.f(`<line class="grid" x1="%s%%" x2="%s%%" y1="0" y2="%d"/>`, num(at), num(at), height-axisHeight+4)
		text := lab.Duration(time.Duration(tick))
		if tick == 0 {
			text = "0"
		}
		s.f(`<text class="tick" x="%s%%" y="%d" text-anchor="%s">%s</text>`, num(at), height-8, anchor, text)
	}

	first, marks := true, 0
	stop := func() string { // one stop for the tab key; the arrow keys do the rest
		if first {
			first = false
			return "0"
		}
		return "-1"
	}
	for i, lane := range t.Lanes {
		top := i * laneHeight
		s.f(`<g class="lane" role="list" aria-label="%s"><text class="who" x="0" y="%d">%s</text>`,
			esc(lane.Name.In(lang)), top+12, esc(lane.Name.In(lang)))
		s.f(`<line class="rail" x1="0" x2="100%%" y1="%d" y2="%d"/>`, top+barTop+barHeight/2, top+barTop+barHeight/2)
		for _, span := range lane.Spans {
			tip := lab.T("%s %s: %s, from %s", "%s %s：%s，始于 %s").With(lane.Name, span.Label,
				lab.Duration(span.To-span.From), lab.Duration(span.From)).In(lang)
			y, h := top+barTop, barHeight
			if span.State == lab.Running {
				y, h = top+barTop+barHeight/2-3, 6
			}
			w := max(x(span.To)-x(span.From), 0)
			s.f(`<g class="span %s" role="listitem" tabindex="%s" data-tip="%s" aria-label="%s"
data-lane="%d">`, span.State, stop(), esc(tip), esc(tip), i)
			s.f(`<svg x="%s%%" y="%d" width="%s%%" height="%d" style="width:max(2px,%s%%)">`,
				num(x(span.From)), y, num(w), h, num(w))
			s.f(`<rect class="fill" x="0" y="0" width="100%%" height="100%%" rx="3"/>`)
			if text := span.Label.In(lang); span.State != lab.Running && fits(text, w, assumed) {
				class := ""
				if fits(text, w, narrow) {
					class = " fits"
				}
				// Stripes and dots make a text hard to read: it has a plate of its own.
				s.f(`<rect class="plate%s" x="3" y="3" width="%s" height="%d" rx="2"/>`,
					class, num(float64(lab.Columns(text))*(perColumn-0.3)+8), barHeight-6)
				s.f(`<text class="inside%s" x="7" y="15">%s</text>`, class, esc(text))
			}
			s.f(`</svg></g>`)
		}
		free := -1.0 // where the next text may begin
		numbers := numbered(lane, x, &marks)
		for j, m := range lane.Marks {
			at := x(m.At)
			tip := markTip.With(lane.Name, m.Label, lab.Duration(m.At)).In(lang)
			label := m.Label.In(lang)
			s.f(`<g class="mark" role="listitem" tabindex="%s" data-tip="%s" aria-label="%s"
data-lane="%d">`, stop(), esc(tip), esc(tip), i)
			s.f(`<svg x="%s%%" y="%d" width="1" height="1" overflow="visible"><path d="M0 -3 l-4.5 8 h9
z"/><rect class="hit" x="-8" y="-8" width="16" height="16"/></svg>`,
				num(at), top+barTop+barHeight+4)
			if numbers[j] != "" {
				s.f(`<text class="mark-number" x="%s%%" dx="%d" y="%d" text-anchor="%s">%s</text>`, num(min(at, 100)),
					numberAt(at), top+barTop+barHeight+12, numberAnchor(at), numbers[j])
			}
			w := float64(lab.Columns(label)+2) * perColumn / assumed * 100
			begin, anchor, dx := at, "start", 7
			if at+w > 100 {
				begin, anchor, dx = at-w, "end", -7
			}
			// The sign of another mark in its way hides a text; the other mark has its own text.
			clear := begin > free
			for k, other := range lane.Marks {
				if o := x(other.At); k != j && o >= begin && o < begin+w {
					clear = clear && o == at
				}
			}
			if clear {
				s.f(`<text class="mark-text" x="%s%%" dx="%d" y="%d" text-anchor="%s">%s</text>`, num(at),
					dx, top+barTop+barHeight+12, anchor, esc(label))
				free = begin + w
			}
			s.f(`</g>`)
		}
		s.f(`</g>`)
	}
	s.f(`</svg>`)
	return template.HTML(s.String())
}

func fits(text string, percent, assumed float64) bool {
	return float64(lab.Columns(text)+2)*perColumn <= percent/100*assumed
}

// markTip explains a mark.
var markTip = lab.T("%s %s, at %s", "%s %s，时刻 %s")

// Marks are the words of the marks of a timeline, for pictures that are too narrow for the words.
// They have the numbers that the picture shows there.
func Marks(t *lab.Timeline, lang lab.Lang) (all []string) {
	for _, lane := range t.Lanes {
		for _, m := range lane.Marks {
			all = append(all, markTip.With(lane.Name, m.Label, lab.Duration(m.At)).In(lang))
		}
	}
	return all
}

// numbered returns the numbers of a lane's marks, which continue after n. Where two numbers do not
// fit beside each other, the first mark has all numbers from the first to the last, and the others
// have none.
func numbered(lane *lab.Lane, x func(time.Duration) float64, n *int) []string {
	const room = 26.0 / narrow * 100
	close := func(a, b lab.Mark) bool {
		between := x(b.At) - x(a.At)
		// Two numbers that face each other must have room for both.
		return between < room || numberAt(x(b.At)) < 0 && numberAt(x(a.At)) > 0 && between < 2*room
	}
	numbers := make([]string, len(lane.Marks))
	for from := 0; from < len(lane.Marks); {
		to := from
		for to+1 < len(lane.Marks) && close(lane.Marks[from], lane.Marks[to+1]) {
			to++
		}
		numbers[from] = strconv.Itoa(*n + from + 1)
		if to > from {
			numbers[from] += "–" + strconv.Itoa(*n+to+1)
		}
		from = to + 1
	}
	*n += len(lane.Marks)
	return numbers
}

// A number stands to the right of its mark, and at the end of a picture to its left.
func numberAt(x float64) int {
	if x > 90 {
		return -7
	}
	return 7
}

func numberAnchor(x float64) string {
	if x > 90 {
		return "end"
	}
	return "start"
}

// ticks returns about n round numbers from a to b.
func ticks(a, b float64, n int) (at []float64) {
	if !(b > a) {
		return []float64{a}
	}
	step := math.Pow(10, math.Floor(math.Log10((b-a)/float64(n))))
	for _, k := range []float64{1, 2, 5, 10} {
		if (b-a)/(step*k) <= float64(n) {
			step *= k
			break
		}
	}
	for i := math.Ceil(a/step - 1e-9); i*step <= b*(1+1e-9); i++ {
		at = append(at, i*step+0) // +0, as there is a negative zero
	}
	return at
}

// The measures of a chart, in its own units. On a phone one of them is about a pixel.
const (
	chartWidth  = 360
	chartHeight = 250
	left        = 54
	right       = 14
	top         = 10
	bottom      = 44
)

// measured returns c without points that are not numbers, and without figures so large or small
// that a difference between two of them would be none.
func measured(c lab.Chart) lab.Chart {
	const most, least = 1e100, 1e-100
	figure := func(v float64) (float64, bool) {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return 0, false
		case math.Abs(v) < least:
			return 0, true
		}
		return min(max(v, -most), most), true
	}
	series := slices.Clone(c.Series)
	for i, s := range series {
		series[i].Points = nil
		for _, p := range s.Points {
			x, okX := figure(p.X)
			y, okY := figure(p.Y)
			if okX && okY {
				series[i].Points = append(series[i].Points, lab.Point{X: x, Y: y})
			}
		}
	}
	c.Series = series
	return c
}

// place is the name of a place on an axis that has places.
func place(axis lab.Axis, x float64) lab.Text {
	if x >= 0 && x < float64(len(axis.Ticks)) {
		return axis.Ticks[int(x)]
	}
	return lab.Same(axis.Unit.Format(x))
}

// scale maps an axis to a range of the picture.
type scale struct {
	axis     lab.Axis
	min, max float64
	from, to float64
}

func newScale(axis lab.Axis, values []float64, from, to float64, own bool) (s scale, at []float64) {
	if len(values) == 0 {
		values = []float64{1}
	}
	low, high := slices.Min(values), slices.Max(values)
	s = scale{axis: axis, from: from, to: to}
	if axis.Log {
		low = max(low, 1e-9)
		high = max(high, low)
		if own {
			s.min, s.max = low, max(high, low*1.01)
		} else {
			s.min, s.max = math.Pow(10, math.Floor(math.Log10(low)+1e-9)), math.Pow(10,
				math.Ceil(math.Log10(high)-1e-9))
			if s.max <= s.min {
				s.max = s.min * 10
			}
			decades := math.Round(math.Log10(s.max) - math.Log10(s.min))
			every := math.Ceil(decades / 8)
			for i := 0.0; i <= decades; i += every {
				at = append(at, s.min*math.Pow(10, i))
			}
		}
		return s, at
	}
	if own {
		s.min, s.max = low, high
	} else {
		low, high = min(low, 0), max(high, 0)
		if high <= low {
			high = low + 1
		}
		at = ticks(low, high*1.02, 5)
		step := at[1] - at[0]
		if last := at[len(at)-1]; last < high {
			at = append(at, last+step)
		}
		if at[0] > low {
			at = append([]float64{at[0] - step}, at...)
		}
		s.min, s.max = at[0], at[len(at)-1]
	}
	if s.max <= s.min {
		s.max = s.min + room(s.min)
	}
	return s, at
}

// room is how far an axis goes past v if there is nothing else on it.
func room(v float64) float64 { return max(1, math.Abs(v)/1000) }

func (s scale) at(v float64) float64 {
	part := (v - s.min) / (s.max - s.min)
	if s.axis.Log {
		part = (math.Log(max(v, s.min)) - math.Log(s.min)) / (math.Log(s.max) - math.Log(s.min))
	}
	return s.from + part*(s.to-s.from)
}

// looks is the number of series of a chart that can be told apart.
const looks = 5

// marker is a shape of its own for each series, as colour must not be the only difference.
func marker(series int, x, y, r float64) string {
	switch series % looks {
	case 1:
		return fmt.Sprintf(`<rect class="dot" x="%s" y="%s" width="%s" height="%s"/>`, num(x-r), num(y-r),
			num(2*r), num(2*r))
	case 2:
		return fmt.Sprintf(`<path class="dot" d="M%s %s l%s %s h%s z"/>`, num(x), num(y-r*1.2), num(r*1.2),
			num(r*2.2), num(-r*2.4))
	case 4:
		return fmt.Sprintf(`<path class="dot" d="M%s %s l%s %s h%s z"/>`, num(x), num(y+r*1.2), num(r*1.2),
			num(-r*2.2), num(-r*2.4))
	case 3:
		return fmt.Sprintf(`<path class="dot" d="M%s %s l%s %s l%s %s l%s %s z"/>`, num(x), num(y-r*1.4),
			num(r*1.4), num(r*1.4), num(-r*1.4), num(r*1.4), num(-r*1.4), num(-r*1.4))
	}
	return fmt.Sprintf(`<circle class="dot" cx="%s" cy="%s" r="%s"/>`, num(x), num(y), num(r))
}

// chartTitle is the name of a chart where the chart cannot be seen.
var chartTitle = lab.T("Chart: %s", "图表：%s")

// ChartSVG draws c.
func ChartSVG(id string, c lab.Chart, lang lab.Lang) template.HTML {
	c = measured(c)
	if c.Bars {
		return barsSVG(id, c, lang)
	}
	var s svg
	s.f(`<svg class="chart" id="%s" viewBox="0 0 %d %d" role="group" aria-labelledby="%s-t %s-d">`, id,
		chartWidth, chartHeight, id, id)
	s.f(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id,
		esc(chartTitle.With(c.Title).In(lang)), id, esc(c.Desc.In(lang)))
	var xs, ys []float64
	for _, series := range c.Series {
		for _, p := range series.Points {
			if !slices.Contains(xs, p.X) {
				xs = append(xs, p.X)
			}
			ys = append(ys, p.Y)
		}
	}
	slices.Sort(xs)
	own := len(xs) <= 10 // then the places measured are the ticks
	sx, xTicks := newScale(c.X, xs, left, chartWidth-right, own)
	sy, yTicks := newScale(c.Y, ys, chartHeight-bottom, top, false)
	if own {
		xTicks = xs
	}
	for _, t := range yTicks {
		y := num(sy.at(t))
		s.f(`<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/>`, left, chartWidth-right, y, y)
		s.f(`<text class="tick" x="%d" y="%s" dy="4" text-anchor="end">%s</text>`, left-7, y, esc(c.Y.Unit.Format(t)))
	}
	for _, l := range labels(thinned(xTicks, c.X.Unit, sx, own), c.X.Unit, sx) {
		s.f(`<text class="tick" x="%s" y="%d" text-anchor="%s">%s</text>`, num(l.x), chartHeight-bottom+17,
			l.anchor, esc(l.text))
	}
	s.f(`<text class="axis" x="%d" y="%d" text-anchor="middle">%s</text>`, (left+chartWidth-right)/2,
		chartHeight-8, esc(c.X.Label.In(lang)))
	s.f(`<line class="base" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, chartWidth-right, chartHeight-bottom,
		chartHeight-bottom)
	first := true
	for i, series := range c.Series {
		s.f(`<g class="series s%d" role="list" aria-label="%s"><polyline class="line" points="`, i%looks,
			esc(series.Name.In(lang)))
		for _, p := range series.Points {
			s.f(`%s,%s `, num(sx.at(p.X)), num(sy.at(p.Y)))
		}
		s.f(`"/>`)
		every := 1 + len(series.Points)/10
		for j, p := range series.Points {
			stop := "-1"
			if first {
				stop, first = "0", false
			}
			x, y := sx.at(p.X), sy.at(p.Y)
			tip := lab.T("%s: %s %s, at %s %s", "%[1]s：%[3]s %[2]s，%[5]s为 %[4]s").With(series.Name,
				c.Y.Unit.Format(p.Y), c.Y.Label, c.X.Unit.Format(p.X), c.X.Label).In(lang)
			s.f(`<g class="point" role="listitem" tabindex="%s" data-tip="%s" aria-label="%s"
data-lane="%d">`, stop, esc(tip), esc(tip), i)
			if (j+i*every/3)%every == 0 {
				s.f(`%s`, marker(i, x, y, 3.6))
			}
			s.f(`<circle class="hit" cx="%s" cy="%s" r="9"/></g>`, num(x), num(y))
		}
		s.f(`</g>`)
	}
	s.f(`</svg>`)
	return template.HTML(s.String())
}

// label is a text below the x axis.
type label struct {
	x            float64
	anchor, text string
}

// labels returns the texts for which there is room. The last place always has its text, as the end
// of the measurements; the other texts give way to it.
func labels(at []float64, unit lab.Unit, s scale) (kept []label) {
	const gap = 5
	put := func(v float64) (l label, begin, end float64) {
		l = label{s.at(v), "middle", unit.Format(v)}
		half := halfWidth(l.text)
		if l.x+half > chartWidth {
			l.x, l.anchor = l.x+right-2, "end"
			return l, l.x - 2*half, l.x
		}
		return l, l.x - half, l.x + half
	}
	free, last := math.Inf(-1), len(at)-1
	for i, v := range at {
		l, begin, end := put(v)
		if i < last {
			if _, edge, _ := put(at[last]); begin < free || end+gap > edge {
				continue
			}
		}
		kept = append(kept, l)
		free = end + gap
	}
	return kept
}

// halfWidth is about half of the width of a text. Letters are larger on phones.
func halfWidth(text string) float64 { return float64(utf8.RuneCountInString(text)) * 3.9 }

// thinned leaves out every second tick, or more, until the texts have room. Places that were
// measured are not evenly spaced, and left to the caller.
func thinned(at []float64, unit lab.Unit, s scale, own bool) []float64 {
	if own {
		return at
	}
	for every := 1; ; every++ {
		var kept []float64
		for i := 0; i < len(at); i += every {
			kept = append(kept, at[i])
		}
		fit := true
		for i := 1; i < len(kept); i++ {
			room := s.at(kept[i]) - s.at(kept[i-1])
			fit = fit && halfWidth(unit.Format(kept[i]))+halfWidth(unit.Format(kept[i-1]))+5 <= room
		}
		if fit {
			return kept
		}
	}
}

// barsSVG draws bars from left to right, each with its name above and its value behind.
func barsSVG(id string, c lab.Chart, lang lab.Lang) template.HTML {
	var s svg
	const row = 50
	height := len(c.X.Ticks)*row + 6
	s.f(`<svg class="chart bars" id="%s" viewBox="0 0 %d %d" role="group" aria-labelledby="%s-t %s-d">`, id,
		chartWidth, height, id, id)
	s.f(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id,
		esc(chartTitle.With(c.Title).In(lang)), id, esc(c.Desc.In(lang)))
	highest := 1.0
	for _, series := range c.Series {
		for _, p := range series.Points {
			highest = max(highest, p.Y)
		}
	}
	for _, series := range c.Series {
		s.f(`<g role="list" aria-label="%s">`, esc(series.Name.In(lang)))
		for j, p := range series.Points {
			y := j*row + 4
			name := place(c.X, p.X)
			stop := "-1"
			if j == 0 {
				stop = "0"
			}
			w := max(p.Y, 0) / highest * (chartWidth - 80)
			tip := lab.T("%s: %s %s", "%[1]s：%[3]s %[2]s").With(name, c.Y.Unit.Format(p.Y), c.Y.Label).In(lang)
			s.f(`<g class="point series s%d" role="listitem" tabindex="%s" data-tip="%s" aria-label="%s"
data-lane="0">`, j%looks, stop, esc(tip), esc(tip))
			s.f(`<text class="axis" x="0" y="%d">%s</text>`, y+12, esc(name.In(lang)))
			s.f(`<rect class="bar" x="0" y="%d" width="%s" height="20" rx="3"/>`, y+18, num(max(w, 2)))
			s.f(`<text class="value" x="%s" y="%d">%s</text>`, num(max(w, 2)+7), y+33, esc(c.Y.Unit.Format(p.Y)))
			s.f(`</g>`)
		}
		s.f(`</g>`)
	}
	s.f(`</svg>`)
	return template.HTML(s.String())
}

// Swatch draws the sign of a series for the legend.
func Swatch(i int) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="swatch series s%d" width="34" height="14"
aria-hidden="true"><line class="line" x1="1" x2="33" y1="7" y2="7"/>%s</svg>`,
		i%looks, marker(i, 17, 7, 3.6)))
}

// StateSwatch draws the sign of a state for the legend.
func StateSwatch(state lab.State) template.HTML {
	y, h := 1, 18
	if state == lab.Running {
		y, h = 7, 6
	}
	return template.HTML(fmt.Sprintf(`<svg class="swatch" width="44" height="20" aria-hidden="true"><g
class="span %s"><rect class="fill" x="1" y="%d" width="42" height="%d" rx="3"/></g></svg>`, state, y, h))
}

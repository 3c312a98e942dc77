package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/cmd/locklab/internal/scenarios"
)

// hostile are names that break out of text, attributes and scripts that do not escape them.
var hostile = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onload='x`, `a & b`,
	`&lt;`, `</svg></svg>`,
	"`code`", `{{.}}`, `%s%d%!`, "", " ", "名字", "🔒", strings.Repeat("long ", 200), "a\nb"}

// parsed checks that text is well-formed, and returns all texts, attributes and elements in it.
func parsed(t testing.TB, text string) (texts, attributes []string, elements map[string]int) {
	t.Helper()
	elements = map[string]int{}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, attributes, elements
		}
		require.NoError(t, err, "%q", text)
		switch token := token.(type) {
		case xml.CharData:
			texts = append(texts, string(token))
		case xml.StartElement:
			elements[token.Name.Local]++
			for _, a := range token.Attr {
				attributes = append(attributes, a.Value)
			}
		}
	}
}

// sane checks that a browser would refuse none of an SVG's coordinates.
func sane(t testing.TB, svg string) {
	t.Helper()
	_, _, elements := parsed(t, svg)
	require.Zero(t, elements["script"]+elements["img"], "%q", svg)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		e, _ := token.(xml.StartElement)
		for _, a := range e.Attr {
			switch name := a.Name.Local; name {
			case "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height":
				v, err := strconv.ParseFloat(strings.TrimSuffix(a.Value, "%"), 64)
				require.NoError(t, err, "%s of %s in %q", name, e.Name.Local, svg)
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s of %s in %q", name, e.Name.Local, svg)
				if name == "r" || name == "width" || name == "height" {
					require.GreaterOrEqual(t, v, 0.0, "%s of %s in %q", name, e.Name.Local, svg)
				}
				if name == "cx" || name == "cy" {
					require.True(t, v >= 0 && v <= chartWidth, "%s outside in %q", name, svg)
				}
			case "points", "d":
				require.NotContains(t, a.Value, "NaN")
				require.NotContains(t, a.Value, "Inf")
			}
		}
	}
}

func timeline(length time.Duration, lanes ...*lab.Lane) *lab.Timeline {
	return &lab.Timeline{Title: lab.Same("title"), Desc: lab.Same("desc"), Lanes: lanes, Length: length}
}

func TestNamesAreTextAndNeverMarkup(t *testing.T) {
	for _, name := range hostile {
		t.Run(strconv.Quote(name[:min(len(name), 20)]), func(t *testing.T) {
			text := lab.Same(name)
			tl := timeline(time.Millisecond, &lab.Lane{Name: text,
				Spans: []lab.Span{{State: lab.Waiting, To: time.Millisecond, Label: text}},
				Marks: []lab.Mark{{At: time.Microsecond, Label: text}}})
			tl.Title, tl.Desc = text, text
			svg := string(TimelineSVG("id", tl, lab.English))
			sane(t, svg)
			texts, attributes, _ := parsed(t, svg)
			assert.Contains(t, strings.Join(texts, "\x00"), name)
			assert.Contains(t, strings.Join(attributes, "\x00"), name)

			for _, bars := range []bool{false, true} {
				c := lab.Chart{Title: text, Desc: text, Bars: bars,
					X: lab.Axis{Label: text, Ticks: []lab.Text{text}}, Y: lab.Axis{Label: text},
					Series: []lab.Series{{Name: text, Points: []lab.Point{{X: 0, Y: 1}}}}}
				svg = string(ChartSVG("id", c, lab.English))
				sane(t, svg)
				texts, _, _ = parsed(t, svg)
				assert.Contains(t, strings.Join(texts, "\x00"), name)
			}
			parsed(t, "<div>"+string(prose(name))+"</div>")
			texts, _, elements := parsed(t, "<pre>"+string(highlight(name))+"</pre>")
			assert.Equal(t, name, strings.Join(texts, ""))
			assert.LessOrEqual(t, len(elements), 2, "pre and span")
		})
	}
}

func TestAPageOfHostileResultsIsWellFormed(t *testing.T) {
	r := New(scenarios.Course, lab.Options{})
	for i, s := range scenarios.Course.All() {
		name := hostile[i%len(hostile)]
		text := lab.Same(name)
		r.Add(&lab.Result{Name: s.Name, Title: text, Error: lab.Text{EN: "x" + name, ZH: name}, Found: text,
			Checks:    []lab.Check{{Text: text, Got: text}, {Text: text, Open: true, Why: text}},
			Timelines: []*lab.Timeline{timeline(0), timeline(1, &lab.Lane{Name: text})},
			Charts:    []lab.Chart{{Title: text, X: lab.Axis{Label: text}, Y: lab.Axis{Label: text}}},
			Tables:    []lab.Table{{Title: text, Head: []lab.Text{text}, Rows: [][]lab.Text{{text, text}, {}}}, {}},
			Quotes:    []lab.Quote{{Title: text, Desc: text, Text: name}}})
	}
	var page, text bytes.Buffer
	require.NoError(t, r.HTML(&page))
	body := regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`).ReplaceAllString(page.String(), "")
	_, _, elements := parsed(t, body)
	assert.Zero(t, elements["script"]+elements["img"])
	assert.NotContains(t, page.String(), "ZgotmplZ")
	for _, s := range r.Scenarios {
		require.NoError(t, Text(&text, s, lab.Chinese, true))
	}
	require.NoError(t, r.JSON(&text))

	r.Add(&lab.Result{Name: "unknown"})
	require.ErrorContains(t, r.HTML(io.Discard), "unknown")
	require.Equal(t, 0, r.Held())
	require.False(t, r.OK)
}

func TestPicturesOfNothing(t *testing.T) {
	for name, svg := range map[string]template.HTML{
		"no lanes":      TimelineSVG("id", timeline(0), lab.Chinese),
		"an empty lane": TimelineSVG("id", timeline(0, &lab.Lane{Name: lab.Same("Ann")}), lab.Chinese),
		"a moment": TimelineSVG("id",
			timeline(1, &lab.Lane{Spans: []lab.Span{{State: lab.Running, To: 1}}}), lab.English),
		"no series":   ChartSVG("id", lab.Chart{}, lab.English),
		"no points":   ChartSVG("id", lab.Chart{Series: []lab.Series{{Name: lab.Same("a")}, {Name: lab.Same("b")}}}, lab.English),
		"logarithmic": ChartSVG("id", lab.Chart{X: lab.Axis{Log: true}, Y: lab.Axis{Log: true}}, lab.English),
		"no bars":     ChartSVG("id", lab.Chart{Bars: true}, lab.English),
		"bars not named": ChartSVG("id", lab.Chart{Bars: true,
			Series: []lab.Series{{Points: []lab.Point{{X: 0, Y: 1}, {X: 7, Y: 1}, {X: -1, Y: 1}}}}}, lab.English),
		"one point": ChartSVG("id", lab.Chart{Series: []lab.Series{{Points: []lab.Point{{}}}}}, lab.English),
		"all the same": ChartSVG("id", lab.Chart{Series: []lab.Series{{Points: []lab.Point{{X: 5, Y: 5},
			{X: 5, Y: 5}}}}}, lab.English),
		"one, logarithmic": ChartSVG("id", lab.Chart{X: lab.Axis{Log: true}, Y: lab.Axis{Log: true},
			Series: []lab.Series{{Points: []lab.Point{{X: 1, Y: 1}}}}}, lab.English),
		"zero, logarithmic": ChartSVG("id", lab.Chart{X: lab.Axis{Log: true}, Y: lab.Axis{Log: true},
			Series: []lab.Series{{Points: []lab.Point{{}}}}}, lab.English),
	} {
		t.Run(name, func(t *testing.T) { sane(t, string(svg)) })
	}
	assert.Empty(t, chartRows(lab.Chart{}, lab.English))
	assert.Empty(t, prose(" \n\n \n\n"))
	assert.Empty(t, highlight(""))
	assert.Empty(t, Wrap(" ", 6))
	var text bytes.Buffer
	require.NoError(t, Text(&text, &lab.Result{Timelines: []*lab.Timeline{timeline(0),
		timeline(5, &lab.Lane{})}}, lab.English, true))
}

func TestPicturesOfExtremes(t *testing.T) {
	extremes := []float64{0, math.Copysign(0, -1), 1e-300, 1e-9, 1, 1e9, 1e18, 1e300, math.MaxFloat64, -1,
		-1e9, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, a := range extremes {
		for _, b := range extremes {
			for _, log := range []bool{false, true} {
				for _, bars := range []bool{false, true} {
					c := lab.Chart{Bars: bars, X: lab.Axis{Log: log, Ticks: []lab.Text{lab.Same("one"), lab.Same("other")}},
						Y:      lab.Axis{Log: log, Unit: lab.Nanos},
						Series: []lab.Series{{Name: lab.Same("s"), Points: []lab.Point{{X: a, Y: b}, {X: b, Y: a}}}}}
					sane(t, string(ChartSVG("id", c, lab.English)))
					chartRows(c, lab.English)
				}
			}
		}
	}
	long := time.Duration(math.MaxInt64)
	tl := timeline(long, &lab.Lane{Spans: []lab.Span{{State: lab.Waiting, From: 0, To: long},
		{State: lab.Running, From: long, To: 0}}, Marks: []lab.Mark{{At: long}, {At: -long}}})
	svg := string(TimelineSVG("id", tl, lab.English))
	sane(t, svg)
	var text bytes.Buffer
	require.NoError(t, Text(&text, &lab.Result{Timelines: []*lab.Timeline{tl}}, lab.English, true))
	for line := range strings.Lines(text.String()) {
		require.LessOrEqual(t, lab.Columns(strings.TrimRight(line, "\n")), width)
	}
}

func TestManyLanesAndPointsStayWithinTheirSize(t *testing.T) {
	var lanes []*lab.Lane
	for range 200 {
		lanes = append(lanes, &lab.Lane{Name: lab.Same("goroutine"), Spans: []lab.Span{{State: lab.Exclusive, To: 7}}})
	}
	svg := string(TimelineSVG("id", timeline(7, lanes...), lab.English))
	sane(t, svg)
	assert.Equal(t, 1, strings.Count(svg, `tabindex="0"`), "one stop for the tab key")
	assert.Contains(t, svg, `height="`+strconv.Itoa(200*laneHeight+axisHeight)+`"`)

	var points []lab.Point
	for i := range 1000 {
		points = append(points, lab.Point{X: float64(i), Y: float64(i * i)})
	}
	svg = string(ChartSVG("id", lab.Chart{Series: []lab.Series{{Name: lab.Same("a"), Points: points},
		{Name: lab.Same("b"), Points: points}}}, lab.English))
	sane(t, svg)
	assert.Equal(t, 1, strings.Count(svg, `tabindex="0"`))
	assert.Less(t, strings.Count(svg, `class="dot"`), 30, "the line is drawn, and not every point marked")
}

func TestTextsBelowAnAxisHaveRoom(t *testing.T) {
	for _, unit := range []lab.Unit{lab.Count, lab.Nanos, lab.Percent} {
		for n := 1; n <= 12; n++ {
			var at []float64
			for i := range n {
				at = append(at, math.Pow(3, float64(i)))
			}
			s, _ := newScale(lab.Axis{Log: true, Unit: unit}, at, left, chartWidth-right, true)
			all := labels(at, unit, s)
			require.NotEmpty(t, all)
			assert.Equal(t, unit.Format(at[n-1]), all[len(all)-1].text, "the last place has its text")
			end := math.Inf(-1)
			for _, l := range all {
				begin, half := l.x-halfWidth(l.text), halfWidth(l.text)
				if l.anchor == "end" {
					begin = l.x - 2*half
				}
				require.Greater(t, begin, end)
				end = begin + 2*half
				require.LessOrEqual(t, end, float64(chartWidth+right))
			}
		}
	}
}

func TestSeriesCanBeToldApart(t *testing.T) {
	seen := map[string]bool{}
	for i := range looks {
		m := marker(i, 0, 0, 1)
		assert.False(t, seen[m], "%d", i)
		seen[m] = true
		assert.Contains(t, pageCSS, ".series.s"+strconv.Itoa(i)+" ")
	}
	assert.Equal(t, Swatch(0), Swatch(looks), "then they begin again")
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want []float64
	}{
		{0, 10, []float64{0, 2, 4, 6, 8, 10}},
		{0, 1, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{-1, 1, []float64{-1, -0.5, 0, 0.5, 1}},
		{3, 3, []float64{3}},
		{5, 1, []float64{5}},
	} {
		assert.InDeltaSlice(t, c.want, ticks(c.a, c.b, 5), 1e-9, "%v to %v", c.a, c.b)
	}
}

func TestTheChartTableHasALinePerX(t *testing.T) {
	c := lab.Chart{Series: []lab.Series{{Points: []lab.Point{{X: 1, Y: 2}, {X: 2, Y: 4}}},
		{Points: []lab.Point{{X: 2, Y: 8}}}}}
	assert.Equal(t, [][]string{{"1", "2", ""}, {"2", "4", "8"}}, chartRows(c, lab.English))
}

func TestProseHasParagraphsAndCode(t *testing.T) {
	assert.Equal(t, "<p>a <code>b &lt; c</code> d</p>\n<p>e</p>\n", string(prose("a `b < c` d\n\ne")))
}

func TestTheTextForTerminals(t *testing.T) {
	r := &lab.Result{Name: "n", Title: lab.Same("T"), Error: lab.Same("first\n\tsecond\n"),
		Checks: []lab.Check{{Text: lab.Same("holds"), OK: true},
			{Text: lab.Same("does not"), Got: lab.Same("want 1, got 2")}},
		Found: lab.Same(strings.Repeat("word ", 100)), Quotes: []lab.Quote{{Title: lab.Same("Said"), Text: "line\n  indented\n\n"}},
		Timelines: []*lab.Timeline{timeline(100,
			&lab.Lane{Name: lab.Same("Ann"), Spans: []lab.Span{{State: lab.Exclusive, To: 50},
				{State: lab.Waiting, From: 50, To: 100}}}, &lab.Lane{Name: lab.Same("名")})}}
	var b bytes.Buffer
	require.NoError(t, Text(&b, r, lab.English, true))
	text := b.String()
	assert.Contains(t, text, "FAIL  n ")
	assert.Contains(t, text, " 1/2 ")
	assert.Contains(t, text, "contradicted: does not\n")
	assert.Contains(t, text, "want 1, got 2")
	assert.Contains(t, text, "      first\n      \tsecond\n")
	assert.Contains(t, text, "Said\n        line\n          indented\n\n")
	assert.Regexp(t, `Ann  █+░+\n`, text)
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, lab.Columns(strings.TrimRight(line, " \n")), width, "%q", line)
	}
	b.Reset()
	require.NoError(t, Text(&b, r, lab.English, false))
	assert.NotContains(t, b.String(), "█")
}

func TestJSONComesBackAsItWent(t *testing.T) {
	r := New(scenarios.Course, lab.Options{Seed: math.MaxUint64, Quick: true})
	r.Add(&lab.Result{Name: "a", OK: true, Elapsed: time.Hour, Observations: map[string]any{"k": "v"},
		Quotes: []lab.Quote{{Text: "<&>"}}})
	var b bytes.Buffer
	require.NoError(t, r.JSON(&b))
	var back Report
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	assert.Equal(t, r.Scenarios, back.Scenarios)
	assert.Equal(t, r.Seed, back.Seed)
	assert.Equal(t, 1, back.Held())

	r.Add(&lab.Result{Observations: map[string]any{"k": math.NaN()}})
	require.ErrorContains(t, r.JSON(io.Discard), "the JSON report")
}

func TestChaptersAreWrittenOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "docs")
	n, err := WriteDocs(scenarios.Course, dir)
	require.NoError(t, err)
	require.Equal(t, len(lab.Langs)*(len(scenarios.Course.All())+1), n, "in each language")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	index := filepath.Join(dir, "lab", scenarios.Course.Index)
	require.NoError(t, os.Chtimes(index, old, old))
	_, err = WriteDocs(scenarios.Course, dir)
	require.NoError(t, err)
	info, err := os.Stat(index)
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(old), "what has not changed is not written")
	require.NoError(t, os.Remove(index))
	require.NoError(t, os.Mkdir(index, 0o700))
	_, err = WriteDocs(scenarios.Course, dir)
	require.Error(t, err)
}

func FuzzPicturesAreWellFormed(f *testing.F) {
	for _, name := range hostile {
		f.Add(name, int64(1), int64(1000), 1.0, 2.0, false, false)
	}
	f.Add("x", int64(math.MaxInt64), int64(math.MinInt64), math.Inf(1), math.NaN(), true, true)
	f.Fuzz(func(t *testing.T, name string, from, to int64, a, b float64, log, bars bool) {
		if !utf8.ValidString(name) || strings.ContainsFunc(name,
			func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == '\uFFFE' || r == '\uFFFF' }) {
			return // no text
		}
		text := lab.Same(name)
		tl := timeline(time.Duration(to), &lab.Lane{Name: text,
			Spans: []lab.Span{{State: lab.Shared, From: time.Duration(from), To: time.Duration(to), Label: text}},
			Marks: []lab.Mark{{At: time.Duration(from), Label: text}}})
		sane(t, string(TimelineSVG("id", tl, lab.English)))
		sane(t, string(ChartSVG("id", lab.Chart{Title: text, Bars: bars,
			X: lab.Axis{Log: log, Label: text, Ticks: []lab.Text{text, text}}, Y: lab.Axis{Log: log, Unit: lab.Rate},
			Series: []lab.Series{{Name: text, Points: []lab.Point{{X: a, Y: b}, {X: b, Y: a}, {X: 0, Y: 0}}}}}, lab.English)))
		parsed(t, "<div>"+string(prose(name))+"</div>")
		texts, _, _ := parsed(t, "<pre>"+string(highlight(name))+"</pre>")
		require.Equal(t, name, strings.Join(texts, ""))
		for line := range strings.Lines(Wrap(name, 4)) {
			require.True(t, strings.HasPrefix(line, "    "))
		}
	})
}

func TestMarksWithoutRoomForTheirNumbersShareOne(t *testing.T) {
	lane := &lab.Lane{Marks: []lab.Mark{{At: 0}, {At: 5}, {At: 50}, {At: 80}, {At: 95}, {At: 97}}}
	n := 2
	got := numbered(lane, func(at time.Duration) float64 { return float64(at) }, &n)
	require.Equal(t, []string{"3–4", "", "5", "6–8", "", ""}, got)
	require.Equal(t, 8, n, "the next lane continues")
}

func TestEveryMarkHasItsWords(t *testing.T) {
	tl := timeline(10, &lab.Lane{Name: lab.T("holder", "持有者"), Marks: []lab.Mark{{At: 1, Label: lab.T("crashes", "崩溃")}}},
		&lab.Lane{Name: lab.Same("Ann"), Marks: []lab.Mark{{At: 2, Label: lab.Same("x")}}})
	require.Equal(t, []string{"holder crashes, at 1 ns", "Ann x, at 2 ns"}, Marks(tl, lab.English))
	require.Equal(t, []string{"持有者崩溃，时刻 1 ns", "Ann x，时刻 2 ns"}, Marks(tl, lab.Chinese))
}

func TestChineseLinesEndWhereTheyMay(t *testing.T) {
	for line := range strings.Lines(wrapped(strings.Repeat("等待锁，然后（再次）申请 `Lock`。", 20), 2, 30)) {
		line = strings.TrimSuffix(line, "\n")
		require.LessOrEqual(t, lab.Columns(line), 34, "%q: a closing mark may hang", line)
		require.False(t, strings.ContainsAny(strings.TrimSpace(line)[:3], "，。）"), line)
		require.False(t, strings.HasSuffix(line, "（"), line)
	}
	require.Equal(t, "  a b\n", wrapped("a b", 2, 30))
}

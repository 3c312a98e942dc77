package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Unit says how a number is written.
type Unit string

// The units.
const (
	Count    Unit = ""
	Nanos    Unit = "ns"
	Percent  Unit = "%"    // of 1
	Rate     Unit = "1/s"  // operations a second
	Decimals Unit = "0.00" // an index from 0 to 1
)

// Axis is one of a chart.
type Axis struct {
	Label Text `json:"label"`
	Unit  Unit `json:"unit,omitempty"`
	Log   bool `json:"log,omitempty"`
	// Ticks, if not empty, are all there are, evenly spaced: the axis has places and no scale.
	Ticks []Text `json:"ticks,omitempty"`
}

// Point is one measurement.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Series is a line, or one bar of each group.
type Series struct {
	Name   Text    `json:"name"`
	Points []Point `json:"points"`
}

// Chart compares. With Bars, the points of a series are bars at X = 0, 1, 2, named by the ticks
// of the x axis.
type Chart struct {
	Title  Text     `json:"title"`
	Desc   Text     `json:"desc"`
	Bars   bool     `json:"bars,omitempty"`
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series"`
}

// Format writes v as a reader expects it.
func (u Unit) Format(v float64) string {
	switch u {
	case Nanos:
		return Duration(time.Duration(v))
	case Percent:
		p := v * 100
		if p != 0 && p < 1 {
			return strconv.FormatFloat(p, 'g', 2, 64) + " %"
		}
		return strconv.FormatFloat(math.Round(p*10)/10, 'f', -1, 64) + " %"
	case Rate:
		return short(v) + "/s"
	case Decimals:
		return strconv.FormatFloat(v+0, 'f', 2, 64) // +0, as there is a negative zero
	}
	return short(v)
}

func short(v float64) string {
	abs := math.Abs(v)
	switch {
	case abs >= 9.995e8:
		return digits(v/1e9) + " G"
	case abs >= 9.995e5:
		return digits(v/1e6) + " M"
	case abs >= 9.9995e4:
		return digits(v/1e3) + " k"
	case v == math.Trunc(v):
		return strconv.FormatFloat(v+0, 'f', 0, 64) // As in Format.
	}
	return digits(v)
}

// digits writes v with three significant digits.
func digits(v float64) string {
	decimals := 0
	switch abs := math.Abs(v); {
	case abs < 9.995:
		decimals = 2
	case abs < 99.95:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Duration writes d with three significant digits.
func Duration(d time.Duration) string {
	v := float64(d)
	switch abs := math.Abs(v); {
	case abs < 999.5:
		return strconv.FormatInt(int64(d), 10) + " ns"
	case abs < 999.5e3:
		return digits(v/1e3) + " µs"
	case abs < 999.5e6:
		return digits(v/1e6) + " ms"
	}
	return digits(v/1e9) + " s"
}

var funcs = template.FuncMap{
	// n writes a number or a duration.
	"n": func(v any) (string, error) {
		switch v := v.(type) {
		case time.Duration:
			return Duration(v), nil
		case int:
			return short(float64(v)), nil
		case uint64:
			return short(float64(v)), nil
		case float64:
			return short(v), nil
		}
		return "", fmt.Errorf("no number: %T", v)
	},
	"percent": func(v float64) string { return Percent.Format(v) },
	"index":   func(v float64) string { return Decimals.Format(v) },
}

// times says how often.
func times(lang Lang) func(any) string {
	return func(v any) string {
		s := fmt.Sprint(v)
		if lang == Chinese {
			return s + " 次"
		}
		switch s {
		case "0":
			return "never"
		case "1":
			return "once"
		case "2":
			return "twice"
		}
		return s + " times"
	}
}

// expand fills the observations into a text, the same into both languages.
func expand(text Text, observed map[string]any) (Text, error) {
	en, err := expandIn(English, text.EN, observed)
	if err != nil {
		return Text{}, err
	}
	zh, err := expandIn(Chinese, text.ZH, observed)
	return Text{en, Spaced(zh)}, err
}

func expandIn(lang Lang, text string, observed map[string]any) (string, error) {
	own := make(map[string]any, len(observed))
	for key, value := range observed {
		if t, ok := value.(Text); ok {
			value = t.In(lang)
		}
		own[key] = value
	}
	t, err := template.New("found").Funcs(funcs).Funcs(template.FuncMap{"times": times(lang)}).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("the text of the scenario: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, own); err != nil {
		return "", fmt.Errorf("the text of the scenario: %w", err)
	}
	return b.String(), nil
}

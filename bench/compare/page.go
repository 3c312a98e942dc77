package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"machine": machine, "trust": trust, "afterwards": afterwards, "cost": cost, "percent": percent, "charts": charts,
	"spread":   Figures.spread,
	"distance": Verdict.distance,
	"place":    Prediction.bar,
	"ratio":    func(x float64) string { return fmt.Sprintf("%.2f", x) },
	// width is a length in the chart of m, in percent of the longest bar.
	"width": func(m Measured, x float64) string {
		longest := 0.0
		for _, f := range m.Subjects {
			longest = max(longest, f.High)
		}
		if longest == 0 {
			return "0"
		}
		return fmt.Sprintf("%.2f", 100*max(0, x)/longest)
	},
	"minus": func(a, b float64) float64 { return a - b },
	// bar is a length in the chart of verdicts, of which the target is in the middle.
	"bar": func(v Verdict) string { return fmt.Sprintf("%.2f", min(100, 50*v.distance())) },
}).Parse(pageText))

// writePage writes r to a file as a page that needs nothing else.
func writePage(path string, r Report) error {
	var b bytes.Buffer
	if err := page.Execute(&b, r); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

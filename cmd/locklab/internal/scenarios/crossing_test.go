package scenarios

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

func TestACrossingIsToldInWords(t *testing.T) {
	line := func(name string, ys ...float64) lab.Series {
		s := lab.Series{Name: lab.Same(name)}
		for i, y := range ys {
			s.Points = append(s.Points, lab.Point{X: float64(100 * (i + 1)), Y: y})
		}
		return s
	}
	for name, c := range map[string]struct {
		a, b []float64
		want string
	}{
		"nothing measured":         {nil, nil, "neither: they were level"},
		"level":                    {[]float64{1, 2, 3}, []float64{1.04, 1.95, 3}, "neither: they were level"},
		"one is better":            {[]float64{1, 1, 1}, []float64{2, 1, 2}, "A wherever they were not level"},
		"one is better everywhere": {[]float64{1, 1, 1}, []float64{2, 3, 2}, "A everywhere"},
		"better once": {[]float64{1, 1, 2}, []float64{1, 1, 1},
			"B at 300 ns; elsewhere they were level"},
		"once":  {[]float64{1, 2, 3, 4}, []float64{2, 2, 2, 2}, "A at 100 ns, B from 300 ns"},
		"later": {[]float64{1, 1, 3, 4}, []float64{2, 2, 2, 2}, "A up to 200 ns, B from 300 ns"},
		"there and back": {[]float64{1, 3, 1}, []float64{2, 2, 2},
			"A at both ends; they were too close to tell in between, and crossed 2 times"},
		"again and again": {[]float64{1, 3, 1, 3}, []float64{2, 2, 2, 2},
			"first A and last B; they were too close to tell in between, and crossed 3 times"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, crossing(line("A", c.a...), line("B", c.b...), lab.Nanos).EN)
		})
	}
}

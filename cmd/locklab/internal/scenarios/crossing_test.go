package scenarios

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

func TestACrossingIsToldInWords(t *testing.T) {
	line := func(name string, ys ...float64) lab.Series {
		s := lab.Series{Name: name}
		for i, y := range ys {
			s.Points = append(s.Points, lab.Point{X: float64(100 * (i + 1)), Y: y})
		}
		return s
	}
	for name, c := range map[string]struct {
		a, b []float64
		want string
	}{
		"nothing measured": {nil, nil, "they did not cross, and were level everywhere"},
		"level":            {[]float64{1, 2, 3}, []float64{1.04, 1.95, 3}, "they did not cross, and were level everywhere"},
		"one is better":    {[]float64{1, 1, 1}, []float64{2, 1, 2}, "they did not cross: A was ahead from 100 ns to 300 ns, or level"},
		"better once":      {[]float64{1, 1, 2}, []float64{1, 1, 1}, "they did not cross: B was ahead at 300 ns, and elsewhere they were level"},
		"once":             {[]float64{1, 2, 3, 4}, []float64{2, 2, 2, 2}, "they crossed between 100 ns, where A was ahead, and 300 ns, where B was"},
		"there and back":   {[]float64{1, 3, 1}, []float64{2, 2, 2}, "they crossed 2 times, as noise has it, and A was ahead at both ends, 100 ns and 300 ns"},
		"again and again":  {[]float64{1, 3, 1, 3}, []float64{2, 2, 2, 2}, "A was ahead at 100 ns and B at 400 ns; in between noise decides, and they crossed 3 times"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, crossing(line("A", c.a...), line("B", c.b...), lab.Nanos))
		})
	}
}

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
		"nothing measured": {nil, nil, "neither; they did not cross"},
		"level":            {[]float64{1, 2, 3}, []float64{1.04, 1.95, 3}, "neither; they did not cross"},
		"one is better":    {[]float64{1, 1, 1}, []float64{2, 1, 2}, "A everywhere, or neither; they did not cross"},
		"better once":      {[]float64{1, 1, 2}, []float64{1, 1, 1}, "B at 300 ns, elsewhere neither; they did not cross"},
		"once":             {[]float64{1, 2, 3, 4}, []float64{2, 2, 2, 2}, "A up to 100 ns, B from 300 ns"},
		"there and back":   {[]float64{1, 3, 1}, []float64{2, 2, 2}, "A at both ends; they crossed 2 times, as noise has it"},
		"again and again":  {[]float64{1, 3, 1, 3}, []float64{2, 2, 2, 2}, "first A and last B; they crossed 3 times, as noise has it"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, crossing(line("A", c.a...), line("B", c.b...), lab.Nanos))
		})
	}
}

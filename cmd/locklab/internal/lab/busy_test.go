package lab

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/bench"
)

var (
	calm = bench.Busy{Known: true, Others: 0.01}
	loud = bench.Busy{Known: true, Others: 0.31, TooBig: true}
)

// raced returns what is judged of a race that came out as ok says, beside other programs.
func raced(ok bool, b bench.Busy, quick bool) (r *Result, again bool) {
	l := &Lab{ctx: context.Background(), res: &Result{}}
	l.Check(true, Same("certain"))
	l.Race(ok, Same("quicker"))
	r = l.finish(&Scenario{}, nil, time.Second)
	r.Busy = b
	return r, r.judge(quick)
}

func TestABusyMachineDecidesNoRace(t *testing.T) {
	for _, ok := range []bool{false, true} {
		r, again := raced(ok, loud, false)
		assert.True(t, again, "another attempt may be calm")
		assert.True(t, r.OK, "nothing is contradicted")
		assert.True(t, r.Open())
		assert.Contains(t, r.Checks[1].Why.EN, "31 %")
		assert.False(t, r.Checks[0].Open, "what is certain is judged")
	}
}

func TestACalmMachineDecidesARace(t *testing.T) {
	r, again := raced(true, calm, false)
	assert.False(t, again)
	assert.True(t, r.OK)
	assert.False(t, r.Open())

	r, again = raced(false, calm, false)
	assert.True(t, again, "one race proves nothing")
	assert.False(t, r.OK)
}

func TestABusyMachineHasNoVerdictInWords(t *testing.T) {
	for name, c := range map[string]struct {
		busy bench.Busy
		want Text
		open bool
	}{"busy": {loud, notJudged, true}, "calm": {calm, Text{"A everywhere", "A 处处领先"}, false}} {
		l := &Lab{ctx: context.Background(), res: &Result{Observations: map[string]any{}, Busy: c.busy}}
		verdict := l.Verdict(Text{"A everywhere", "A 处处领先"})
		l.Observe("ahead", verdict)
		l.Observe("other", Same("A everywhere!"))
		l.Table(Table{Rows: [][]Text{{Same("A and B"), verdict}}})
		r := l.finish(&Scenario{Found: Same("{{.ahead}}. {{.other}}")}, nil, time.Second)
		again := r.judge(false)
		assert.Equal(t, c.want.EN+". A everywhere!", r.Found.EN, name)
		assert.Equal(t, []Text{Same("A and B"), c.want}, r.Tables[0].Rows[0], name)
		assert.Equal(t, c.open, r.Open(), name)
		assert.Equal(t, c.open, again, name)
		assert.True(t, r.OK, name)
	}
}

func TestAQuickRunDoesNotContradictARace(t *testing.T) {
	r, _ := raced(false, calm, true)
	assert.True(t, r.OK)
	assert.True(t, r.Open())
	assert.Contains(t, r.Checks[1].Why.EN, "too short")
}

func TestALostRaceIsRunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		wonAt    int
		quick    bool
		attempts int
	}{
		"won at once":  {1, false, 1},
		"won at last":  {2, false, 2},
		"never won":    {99, false, attempts},
		"never, quick": {99, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			// In virtual time no scenario is long enough for the machine to be judged.
			synctest.Test(t, func(t *testing.T) {
				n := 0
				r := Run(t.Context(), &Scenario{Found: Same("found"), Run: func(_ context.Context, l *Lab) error {
					n++
					l.Race(n >= c.wonAt, Same("quicker"))
					return nil
				}}, Options{Quick: c.quick})
				require.Equal(t, c.attempts, n)
				require.Equal(t, n, r.Attempts)
				require.Len(t, r.Checks, 1, "of the last attempt")
			})
		})
	}
}

func TestAShortScenarioIsNotJudged(t *testing.T) {
	b := bench.Busy{Known: true, Others: 0.5, TooBig: true}
	require.False(t, busy(b, 50*time.Millisecond).TooBig)
	require.True(t, busy(b, time.Second).TooBig)
}

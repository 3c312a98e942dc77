package lab

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/bench"
)

func TestABusyMachineIsSaidBesideWhatWasFound(t *testing.T) {
	s := &Scenario{Name: "waits", Found: "A wait took {{n .wait}}."}
	l := &Lab{ctx: context.Background(), res: &Result{Observations: map[string]any{"wait": time.Second}}}
	l.res.Busy = bench.Busy{Known: true, Others: 0.31, TooBig: true}
	r := l.finish(s, nil, time.Second)
	require.True(t, r.OK)
	require.Contains(t, r.Found, "A wait took 1 s.\n\nThe machine was busy: other programs took 31 % of its processors")

	l.res.Busy = bench.Busy{Known: true, Others: 0.04}
	require.Equal(t, "A wait took 1 s.", l.finish(s, nil, time.Second).Found)
}

func TestAShortScenarioIsNotJudged(t *testing.T) {
	b := bench.Busy{Known: true, Others: 0.5, TooBig: true}
	require.False(t, busy(b, 50*time.Millisecond).TooBig)
	require.True(t, busy(b, time.Second).TooBig)
}

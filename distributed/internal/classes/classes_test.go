package classes_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
)

func TestEachClassHasItsMarks(t *testing.T) {
	for class, want := range map[classes.Class][4]bool{ // refused, login, unavailable, unreachable
		classes.Request:    {true, false, false, false},
		classes.Connection: {true, true, false, false},
		classes.Moment:     {true, false, true, false},
		classes.Doubt:      {false, false, true, false},
		classes.Unclear:    {},
		classes.Stored:     {},
		classes.Unreached:  {true, false, true, true},
		classes.Own:        {},
	} {
		cause := errors.New("answer")
		err := class.Mark(cause)
		require.ErrorIs(t, err, cause)
		require.EqualError(t, err, "answer")
		require.Equal(t, want, [4]bool{
			errors.Is(err, lease.ErrRefused), errors.Is(err, lease.ErrLogin), errors.Is(err, lease.ErrUnavailable),
			errors.Is(err, lease.ErrUnreachable),
		}, class)
	}
}

func TestATableFindsACodeAsAWhole(t *testing.T) {
	table := classes.Table{{"AccessDenied", classes.Request, "a right is missing"}, {"Slow", classes.Moment, "it is busy"}}
	c, ok := table.Class("Slow")
	require.True(t, ok)
	require.Equal(t, classes.Moment, c)
	_, ok = table.Class("SlowDown")
	require.False(t, ok)
}

func TestTheFirstRowThatFitsAnAnswerCounts(t *testing.T) {
	table := classes.Table{
		{"500: election", classes.Doubt, ""}, {"500 Full", classes.Moment, ""}, {"500", classes.Unclear, ""},
		{"4xx", classes.Request, ""},
	}
	require.Equal(t, classes.Doubt, table.Answer(500, "Full", "an election is under way"))
	require.Equal(t, classes.Moment, table.Answer(500, "Full", "full"))
	require.Equal(t, classes.Unclear, table.Answer(500, "", "full"))
	require.Equal(t, classes.Request, table.Answer(418, "", "full"))
	require.Equal(t, classes.Unclear, table.Answer(307, "", ""))
}

func TestANamedAnswerPrefersItsCodeToItsStatus(t *testing.T) {
	table := classes.Table{{"Slow", classes.Moment, ""}, {"409", classes.Stored, ""}, {"4xx", classes.Request, ""}}
	require.Equal(t, classes.Moment, table.Named("Slow", 409))
	require.Equal(t, classes.Stored, table.Named("Other", 409))
	require.Equal(t, classes.Request, table.Named("", 477))
	require.Equal(t, classes.Unclear, table.Named("Other", 500))
}

func TestATableFindsTheFirstCodeInAText(t *testing.T) {
	table := classes.Table{{"not reached", classes.Unreached, ""}, {"reached", classes.Moment, ""}}
	c, ok := table.Containing("the server was not reached")
	require.True(t, ok)
	require.Equal(t, classes.Unreached, c)
	_, ok = table.Containing("refused")
	require.False(t, ok)
}

package classes_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
)

func TestEachClassHasItsMarks(t *testing.T) {
	for class, want := range map[classes.Class][3]bool{ // refused, login, unavailable
		classes.Request:    {true, false, false},
		classes.Connection: {true, true, false},
		classes.Moment:     {true, false, true},
		classes.Doubt:      {false, false, true},
		classes.Unclear:    {},
		classes.Stored:     {},
	} {
		cause := errors.New("answer")
		err := class.Mark(cause)
		require.ErrorIs(t, err, cause)
		require.EqualError(t, err, "answer")
		require.Equal(t, want, [3]bool{
			errors.Is(err, lease.ErrRefused), errors.Is(err, lease.ErrLogin), errors.Is(err, lease.ErrUnavailable),
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

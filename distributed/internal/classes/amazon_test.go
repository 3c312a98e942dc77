package classes_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
)

// The errors of the SDK by their methods: an error code, a status, and a corrected clock.
type (
	coded  string
	answer struct{ error }
	skewed bool
)

func (c coded) Error() string         { return string(c) }
func (c coded) ErrorCode() string     { return string(c) }
func (a answer) Unwrap() error        { return a.error }
func (answer) HTTPStatusCode() int    { return 400 }
func (s skewed) Error() string        { return "skewed" }
func (s skewed) RetryableError() bool { return bool(s) }

func TestAnAnswerHasACodeAndAStatus(t *testing.T) {
	err := fmt.Errorf("put: %w", answer{coded("SlowDown")})
	require.Equal(t, "SlowDown", classes.AmazonCode(err))
	require.Equal(t, 400, classes.AmazonStatus(err))
	require.Empty(t, classes.AmazonCode(answer{coded("UnknownError")}), "of a proxy")
	require.Empty(t, classes.AmazonCode(errors.New("reset")))
	require.Zero(t, classes.AmazonStatus(errors.New("reset")))
}

func TestARequestThatWasNotSentIsRefused(t *testing.T) {
	err := classes.MarkAmazon(errors.New("no route"), classes.Unclear, false, false)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorIs(t, err, lease.ErrUnreachable)
}

func TestOnlyAWriteWithoutAnAnswerIsInDoubt(t *testing.T) {
	require.ErrorIs(t, classes.MarkAmazon(errors.New("reset"), classes.Unclear, true, true), lease.ErrUnavailable)
	require.NotErrorIs(t, classes.MarkAmazon(errors.New("reset"), classes.Unclear, true, false), lease.ErrUnavailable)
}

func TestAnAnswerHasTheMarksOfItsClass(t *testing.T) {
	err := classes.MarkAmazon(answer{coded("ExpiredToken")}, classes.Connection, true, false)
	require.ErrorIs(t, err, lease.ErrLogin)
}

func TestARefusalOfAWrongClockIsForTheMoment(t *testing.T) {
	err := classes.MarkAmazon(answer{skewed(true)}, classes.Connection, true, false)
	require.ErrorIs(t, err, lease.ErrUnavailable)
	require.NotErrorIs(t, err, lease.ErrLogin)
	require.ErrorIs(t, classes.MarkAmazon(answer{skewed(false)}, classes.Connection, true, false), lease.ErrLogin)
}

package classes_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
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

// cut is an answer whose body could not be read: the error of the connection has a status.
type cut struct{ error }

func (c cut) Unwrap() error     { return c.error }
func (cut) HTTPStatusCode() int { return 200 }

func TestAnAnswerThatEndsInItsMiddleIsNone(t *testing.T) {
	for _, err := range []error{net.ErrClosed, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: syscall.ECONNRESET}} {
		read := classes.MarkAmazon(cut{err}, classes.Unclear, true, true)
		require.ErrorIs(t, read, lease.ErrUnavailable, err)
		require.ErrorIs(t, read, lease.ErrUnreachable, err)
		write := classes.MarkAmazon(cut{err}, classes.Unclear, true, false)
		require.NotErrorIs(t, write, lease.ErrUnavailable, "in doubt")
		require.NotErrorIs(t, write, lease.ErrRefused)
	}
	stranger := classes.MarkAmazon(cut{errors.New("invalid character '<'")}, classes.Unclear, true, true)
	require.NotErrorIs(t, stranger, lease.ErrUnavailable, "something else has answered, and goes on so")
	refused := classes.MarkAmazon(answer{io.ErrUnexpectedEOF}, classes.Request, true, true)
	require.ErrorIs(t, refused, lease.ErrRefused, "the status says enough")
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

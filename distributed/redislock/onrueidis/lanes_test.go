package onrueidis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"

	"github.com/jucgo/locks/internal/test/testbed"
)

// server gets the numbers of requests that are sent together, and answers when it may.
type server struct {
	sent   chan int
	answer chan error
	until  chan time.Time // the deadlines of requests that are sent together
}

func newServer() *server {
	return &server{make(chan int, 10), make(chan error, 10), make(chan time.Time, 10)}
}

func (s *server) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return s.DoMulti(ctx, cmd)[0]
}

func (s *server) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	if until, ok := ctx.Deadline(); ok {
		s.until <- until
	}
	s.sent <- len(cmds)
	err := <-s.answer
	replies := make([]rueidis.RedisResult, len(cmds))
	for i, cmd := range cmds {
		if err != nil {
			replies[i] = rueidis.NewErrorResult(answer{err, cmd.Commands()[0]})
		}
	}
	return replies
}

func unbounded(ctx context.Context) context.Context { return ctx }

// lanesTo returns n lanes to s, which also gets requests without a lane.
func lanesTo(s *server, n int) *lanes {
	l := newLanes(s, n)
	l.limitTime, l.patience = unbounded, time.Hour
	l.laneless = func(ctx context.Context, cmd rueidis.Completed) (rueidis.RedisResult, error) {
		return s.Do(ctx, cmd), nil
	}
	return l
}

// answer is an error for one command.
type answer struct {
	error
	command string
}

func (a answer) Unwrap() error { return a.error }

var commands atomic.Int64

// begin has a request sent in a goroutine, and returns a channel with its result.
func begin(l *lanes, ctx context.Context) <-chan error {
	got, name := make(chan error, 1), fmt.Sprint("command ", commands.Add(1))
	go func() {
		r, err := l.do(ctx, rueidis.Builder{}.Arbitrary(name).Build())
		if err == nil {
			err = r.NonRedisError()
		}
		if a := (answer{}); errors.As(err, &a) && a.command != name {
			err = fmt.Errorf("%s got the reply to %s", name, a.command)
		}
		got <- err
	}()
	return got
}

// busyLane returns one lane to a server, and the result of the request under way there.
func busyLane(t *testing.T) (*server, *lanes, <-chan error) {
	t.Helper()
	s := newServer()
	l := lanesTo(s, 1)
	first := begin(l, context.Background())
	require.Equal(t, 1, <-s.sent)
	return s, l, first
}

func (l *lanes) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

func waits(t *testing.T, l *lanes, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return l.waiting() == n }, testbed.Hang, time.Millisecond)
}

var errAnswer = errors.New("answer")

func TestRequestsThatWaitAreSentTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l, first := busyLane(t)
	var others []<-chan error
	for i := range 3 {
		others = append(others, begin(l, ctx))
		waits(t, l, i+1)
	}
	s.answer <- nil
	require.NoError(t, <-first)
	require.Equal(t, 3, <-s.sent)
	s.answer <- errAnswer
	for _, got := range others {
		require.ErrorIs(t, <-got, errAnswer)
	}
	next := begin(l, ctx)
	require.Equal(t, 1, <-s.sent, "the lane is free again")
	s.answer <- nil
	require.NoError(t, <-next)
}

func TestAtMostSixtyFourRequestsAreSentTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l, first := busyLane(t)
	var others []<-chan error
	for i := range 65 {
		others = append(others, begin(l, ctx))
		waits(t, l, i+1)
	}
	s.answer <- nil
	require.NoError(t, <-first)
	require.Equal(t, 64, <-s.sent)
	s.answer <- errAnswer
	require.Equal(t, 1, <-s.sent)
	s.answer <- errAnswer
	for _, got := range others {
		require.ErrorIs(t, <-got, errAnswer)
	}
}

func TestARequestGivenUpEarlyIsNeverSent(t *testing.T) {
	t.Parallel()
	s, l, first := busyLane(t)
	ctx, cancel := context.WithCancel(context.Background())
	second := begin(l, ctx)
	waits(t, l, 1)
	cancel()
	err := <-second
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, lease.ErrRefused)
	s.answer <- nil
	require.NoError(t, <-first)
	require.Zero(t, l.waiting())
	require.Equal(t, 1, l.free)
}

// The request with the earlier deadline does not end the other request, nor wait for it.
func TestARequestsEndLeavesOthersSentWithIt(t *testing.T) {
	t.Parallel()
	s, l, first := busyLane(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	early := begin(l, ctx)
	waits(t, l, 1)
	late, end := context.WithTimeout(context.Background(), time.Hour)
	defer end()
	other := begin(l, late)
	waits(t, l, 2)
	s.answer <- nil
	require.NoError(t, <-first)
	require.Equal(t, 2, <-s.sent)
	cancel()
	err := <-early
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, lease.ErrRefused, "its outcome is unknown")
	s.answer <- errAnswer
	require.ErrorIs(t, <-other, errAnswer)
}

func TestARequestLeavesLanesThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	s, ctx := newServer(), context.Background()
	l := lanesTo(s, 1)
	l.patience = time.Millisecond
	first := begin(l, ctx)
	require.Equal(t, 1, <-s.sent)
	second := begin(l, ctx)
	require.Equal(t, 1, <-s.sent, "it is sent without a lane")
	s.answer <- nil
	s.answer <- nil
	require.NoError(t, <-first)
	require.NoError(t, <-second)
	require.Zero(t, l.waiting())
	require.Equal(t, 1, l.free)
}

// A renewal has as long as its lease. The requests that are sent with it do not wait for that.
func TestRequestsSentTogetherEndSoon(t *testing.T) {
	t.Parallel()
	s, l, first := busyLane(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	renewal := begin(l, ctx)
	waits(t, l, 1)
	other := begin(l, context.Background())
	waits(t, l, 2)
	s.answer <- nil
	require.NoError(t, <-first)
	require.Equal(t, 2, <-s.sent)
	require.WithinDuration(t, time.Now().Add(2*replyTimeout), <-s.until, time.Minute)
	s.answer <- nil
	require.NoError(t, <-renewal)
	require.NoError(t, <-other)
}

// Package redisport is the interface between the packages redislock, redlock and onrueidis. [Port]
// is their interface to client libraries of Redis. Package goredis implements it over go-redis, and
// package onrueidis over rueidis.
package redisport

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Head is the number of values in front of the keys of a request.
const Head = 3

// NewArgs returns the values of a request with keys and arguments, which all follow its head.
func NewArgs(keysAndArgs ...any) []any {
	return append(make([]any, Head, Head+len(keysAndArgs)+2), keysAndArgs...)
}

// Port is a client of a server, of the master behind sentinels, or of a cluster.
type Port interface {
	// Eval runs s once. It never repeats a request that may have been carried out. args has room
	// for Head values, which Eval fills itself, then the keys, then the arguments of the script.
	// These are strings, values of type int or int64, and pointers to these. After a reply args
	// belongs to the caller again. The reply is nil, an int64, a string, or a slice of these.
	//
	// An error reply of the server is an error matching driver.ErrRefused or locks.ErrForeign, see
	// [Refused]. After any other error the outcome is unknown.
	Eval(ctx context.Context, s *Script, keys int, args []any) (any, error)

	// EvalInTime is Eval with a ctx that has a deadline. It returns at the deadline at the latest,
	// and may ignore an earlier cancellation of ctx. So most clients need no second goroutine,
	// which Eval may need.
	EvalInTime(ctx context.Context, s *Script, keys int, args []any) (any, error)

	// EvalSync is Eval, followed by a WAIT for n replicas on the same connection, for timeout at
	// most. acks is how many replicas acknowledged, or 0 if WAIT failed.
	EvalSync(ctx context.Context, s *Script, keys int, args []any, n int, timeout time.Duration,
	) (r any, acks int, err error)

	// ReplyTimeout returns how long EvalSync may wait for its reply, or 0 without a limit.
	ReplyTimeout() time.Duration

	// Set keeps value under key for ttl. It may be carried out more than once.
	Set(ctx context.Context, key, value string, ttl time.Duration) error

	// Place names the servers and the database, as far as the client tells. It contains no
	// password, and is the same in each process with the same settings.
	Place() string

	// Cluster reports whether keys are spread over servers by slots.
	Cluster() bool

	// Shards reports whether the servers know sharded channels.
	Shards(ctx context.Context) (bool, error)

	// Subscribers returns how many subscribers channel has on the server of Eval. In a cluster it
	// is called for sharded channels only, and asks the server of channel.
	Subscribers(ctx context.Context, sharded bool, channel string) (int64, error)

	// Home returns the server of a sharded channel.
	Home(ctx context.Context, channel string) (server string, err error)

	// Servers calls f for the server, or for each master of a cluster, maybe at the same time. It
	// returns the first error.
	Servers(ctx context.Context, f func(ctx context.Context, s Server) error) error

	// Subscriber returns a connection for subscriptions. For sharded channels it goes to the
	// server of channel, for classic channels to any server. It connects later, and again when the
	// connection is lost.
	Subscriber(ctx context.Context, sharded bool, channel string) (Subscriber, error)
}

// Server is one server.
type Server interface {
	// Read sends requests that change nothing, together. They may be sent more than once. A reply
	// is nil, an int64, a string, a slice of these, or the error with which the server answers.
	Read(ctx context.Context, requests ...[]any) (replies []any, err error)
}

// Subscriber is a connection for subscriptions. One goroutine calls Receive. The other methods may
// be called concurrently.
type Subscriber interface {
	Subscribe(ctx context.Context, channels ...string) error
	Unsubscribe(ctx context.Context, channels ...string) error
	Ping(ctx context.Context) error
	// Receive waits for the next event. After an error it goes on with a new connection and the
	// same subscriptions, unless the error is the server's answer to a request.
	Receive(ctx context.Context) (Event, error)
	Close() error
}

// Event is a message or an answer that a connection for subscriptions has received.
type Event struct {
	Kind    EventKind
	Channel string
	Payload string
}

// EventKind is the kind of an [Event].
type EventKind int

const (
	Other EventKind = iota // a sign of life
	Message
	Subscribed
	Unsubscribed
)

// Script is a Lua script. Names and values reach it as KEYS and ARGV only.
type Script struct{ Src, SHA string }

// NewScript returns the script src.
func NewScript(src string) *Script {
	sum := sha1.Sum([]byte(src))
	return &Script{src, hex.EncodeToString(sum[:])}
}

// Millis returns d for PEXPIRE and the like, rounded up.
func Millis(d time.Duration) int64 {
	n := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}

// Text returns an argument of a script as it is sent.
func Text(arg any) string {
	switch a := arg.(type) {
	case string:
		return a
	case *string:
		return *a
	case int:
		return strconv.Itoa(a)
	case *int:
		return strconv.Itoa(*a)
	case int64:
		return strconv.FormatInt(a, 10)
	case *int64:
		return strconv.FormatInt(*a, 10)
	}
	return fmt.Sprint(arg)
}

// NothingDone reports whether err says that a request has surely not been carried out.
func NothingDone(err error) bool {
	return errors.Is(err, driver.ErrRefused) || errors.Is(err, locks.ErrForeign)
}

// Never marks err as the error of a request that was not carried out.
func Never(err error) error { return driver.Mark(err, driver.ErrRefused) }

// Unavailable marks err as the error of a request that was not carried out, for a reason that is
// expected to pass.
func Unavailable(err error) error {
	return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
}

// Unreachable marks err as the error of a request for which no connection could be made.
func Unreachable(err error) error {
	return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
}

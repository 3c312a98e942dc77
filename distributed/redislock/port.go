package redislock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"time"
)

// head is how many values there are in front of the keys of a request.
const head = 3

// port is what this package needs of a client of Redis.
type port interface {
	// eval runs s once: a request that may have been carried out is never sent again. args are room for head
	// values, which it fills itself, so many keys, and the arguments of the script. The reply is nil, an int64, a
	// string, or a slice of such.
	//
	// An error reply of the server is an error matching lease.ErrRefused or locks.ErrForeign; any other
	// error leaves open what has happened.
	eval(ctx context.Context, s *script, keys int, args []any) (any, error)

	// evalSync is eval, after which the server waits on the same connection until n replicas know of it, but not for longer than
	// timeout: acks is how many do, 0 if that could not be asked.
	evalSync(ctx context.Context, s *script, keys int, args []any, n int, timeout time.Duration) (r any, acks int, err error)

	// cluster reports whether keys are spread over servers by slots.
	cluster() bool

	// shards reports whether the servers know sharded channels.
	shards(ctx context.Context) (bool, error)

	// home returns the server that has the sharded channel.
	home(ctx context.Context, channel string) (server string, err error)

	// subscriber returns a connection for subscriptions: to the server that has the sharded channels, one of which is channel,
	// or for classic ones to any. It connects later, and again when the connection is lost.
	subscriber(ctx context.Context, sharded bool, channel string) (subscriber, error)
}

// subscriber is a connection for subscriptions. Receive has a goroutine of its own; everything else may be called
// concurrently.
type subscriber interface {
	Subscribe(ctx context.Context, channels ...string) error
	Unsubscribe(ctx context.Context, channels ...string) error
	Ping(ctx context.Context) error
	// Receive waits for what comes next. After an error it goes on with a new connection, unless the error is
	// the server's answer to a request.
	Receive(ctx context.Context) (event, error)
	Close() error
}

// event is what comes over a connection for subscriptions.
type event struct {
	kind    eventKind
	channel string
	payload string
}

type eventKind int

const (
	other eventKind = iota
	message
	subscribed
	unsubscribed
)

// script is a Lua script. Names and values reach it as KEYS and ARGV only.
type script struct {
	src string
	sha any // a string
}

func newScript(src string) *script {
	sum := sha1.Sum([]byte(src))
	return &script{src, hex.EncodeToString(sum[:])}
}

// millis returns d for PEXPIRE, rounded up.
func millis(d time.Duration) int64 {
	n := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}

package redislock

import (
	"context"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// These are the types of a client of Redis, under the names that they have here.
type (
	port       = redisport.Port
	script     = redisport.Script
	subscriber = redisport.Subscriber
)

const head = redisport.Head

func newArgs(keysAndArgs ...any) []any { return redisport.NewArgs(keysAndArgs...) }

func millis(d time.Duration) int64 { return redisport.Millis(d) }

func init() {
	redisport.NewPlain = func(p port, o *redisport.Options) (redisport.Plain, error) {
		c, err := newCore(p, o)
		if err != nil {
			return nil, err
		}
		return member{newPlain(c)}, nil
	}
}

// member is a [redisport.Plain].
type member struct{ *single }

func (s member) Check(name string) error { return checkName(name, s.c.p.Cluster()) }

func (s member) Notify(ctx context.Context, name string, bell adapter.Bell) (driver.Watch, bool, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil, false, err
	}
	w := &watch{Bell: bell, hear: hearReleases}
	active, err := s.c.hub.attach(ctx, w, m, s.names(name).channel)
	if err != nil {
		w.Close()
		return nil, false, err
	}
	return w, active, nil
}

func (s member) Close(ctx context.Context) { s.c.hub.close(ctx) }

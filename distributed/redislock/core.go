package redislock

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// core is the part that the stores of one client share.
type core struct {
	p      port
	hub    *hub
	pubsub PubSub
	auto   atomic.Int32 // the mode that Auto stands for, or 0 if the mode is not known yet
	jobs   adapter.Jobs // requests that outlast their callers
	own    string       // a channel that no other client subscribes to, for [link.look]

	closing context.Context // ends when Close begins
	close   context.CancelFunc
}

// newCore returns the core of a client of p.
func newCore(p port, o *redisport.Options) (*core, error) {
	if pubsub := PubSub(o.PubSub); pubsub < Auto || pubsub > Both {
		return nil, fmt.Errorf("PubSub of %d, it must be Auto, Classic, Sharded or Both", pubsub)
	}
	c := &core{p: p, hub: newHub(p), pubsub: PubSub(o.PubSub), own: clientKey(rand.Text())}
	c.closing, c.close = context.WithCancel(context.Background())
	return c, nil
}

// eval runs a script for req, in the way that req demands.
func (c *core) eval(ctx context.Context, req driver.Request, s *script, keys int, args []any) (any, error) {
	if e, ok := req.Data.(redisport.Evaluator); ok {
		return e.Eval(ctx, c.p, s, keys, args)
	}
	return c.p.Eval(ctx, s, keys, args)
}

// mode is the kinds of channel that a release is published on.
type mode int32

const (
	classic mode = iota + 1
	sharded
	both
)

// forms returns for each kind of channel whether it is sharded.
func (m mode) forms() []bool {
	switch m {
	case classic:
		return formClassic
	case sharded:
		return formSharded
	}
	return formBoth
}

var formClassic, formSharded, formBoth = []bool{false}, []bool{true}, []bool{false, true}

func (c *core) mode(ctx context.Context) (mode, error) {
	switch {
	case c.pubsub == Sharded:
		return sharded, nil
	case c.pubsub == Both:
		return both, nil
	case c.pubsub == Classic || !c.p.Cluster():
		return classic, nil
	}
	if m := mode(c.auto.Load()); m != 0 {
		return m, nil
	}
	ok, err := c.p.Shards(ctx)
	if err != nil {
		return 0, err
	}
	m := classic
	if ok {
		m = sharded
	}
	c.auto.Store(int32(m))
	return m, nil
}

// attach makes w watch channels too. The caller requests afterwards, whether the channels are
// active or not.
func (c *core) attach(ctx context.Context, w *watch, channels ...string) error {
	m, err := c.mode(ctx)
	if err != nil {
		return err
	}
	active, err := c.hub.attach(ctx, w, m, channels...)
	if active {
		w.drain() // of the confirmations
	}
	return err
}

// publish appends the commands of m to args.
func (m mode) publish(args []any) []any {
	switch m {
	case sharded:
		return append(args, "spublish")
	case both:
		return append(args, "publish", "spublish")
	}
	return append(args, "publish")
}

// releaseReply reads the reply to a release: the number of subscribers of channel, or nil.
func (c *core) releaseReply(r any, err error, channel string) (driver.Released, error) {
	if err != nil || r == nil {
		return driver.Released{}, err
	}
	heard, ok := r.(int64)
	if !ok {
		return driver.Released{}, replyError(r)
	}
	// In a cluster a server counts its own subscribers only.
	own, _ := c.hub.subscribed(channel)
	awaited := c.p.Cluster() || heard > own
	return driver.Released{Held: true, Awaited: awaited}, nil
}

// bySlot returns items by the slots of their keys: one request may have the items of one slot.
func bySlot[T any](c *core, items []T, key func(T) string) map[uint16][]T {
	groups := make(map[uint16][]T, 1)
	for _, item := range items {
		var n uint16
		if c.p.Cluster() {
			n = slot(key(item))
		}
		groups[n] = append(groups[n], item)
	}
	return groups
}

// eachSlot calls f for each slot with the indexes of the slot's ids, for all slots at once. It
// returns the error of a failed call.
func (c *core) eachSlot(ids []driver.HoldID, f func(which []int) error) (failed error) {
	all := make([]int, len(ids))
	for i := range all {
		all[i] = i
	}
	slots := bySlot(c, all, func(i int) string { return ids[i].Name })
	errs := make(chan error, len(slots))
	for _, which := range slots {
		if len(slots) == 1 {
			errs <- f(which)
		} else {
			go func() { errs <- f(which) }()
		}
	}
	for range slots {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}

// renew runs a script of renewal. Its keys are the keys of the locks, followed by the keys that
// holdKey returns if holdKey is not nil. Its arguments are the lease and the acquisitions with
// suffix. In a cluster the script runs once for each slot, because all keys of a request must be in
// one slot.
func (c *core) renew(
	ctx context.Context, s *script, holds []driver.HoldID, d time.Duration,
	suffix string, key func(name string) string, holdKey func(name, acquisition string) string,
) ([]bool, error) {
	held := make([]bool, len(holds))
	return held, c.eachSlot(holds, func(which []int) error {
		args := make([]any, head, head+3*len(which)+1)
		for _, i := range which {
			args = append(args, key(holds[i].Name))
		}
		if holdKey != nil {
			for _, i := range which {
				args = append(args, holdKey(holds[i].Name, holds[i].Acquisition))
			}
		}
		keys := len(args) - head
		args = append(args, millis(d))
		for _, i := range which {
			args = append(args, holds[i].Acquisition+suffix)
		}
		r, err := c.p.Eval(ctx, s, keys, args)
		if err != nil {
			return err
		}
		list, ok := r.([]any)
		if !ok || len(list) != len(which) {
			return replyError(r)
		}
		for k, i := range which {
			held[i] = list[k] == int64(1)
		}
		return nil
	})
}

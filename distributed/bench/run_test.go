package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

// works has two clients of each kind take a lock in turns, or one, if one may wait for ever.
func works(t *testing.T, addr string, kinds []impl) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			const n = 6
			clients := 2
			if k.sticks {
				clients = 1
			}
			out, err := contest{hold: time.Millisecond, think: time.Millisecond}.run(k.several(t, addr, clients), n)
			must(t, err)
			got := 0
			for _, c := range out.counts {
				got += c
			}
			if got != n || len(out.waits) > n {
				t.Errorf("%d acquisitions and %d hand-overs, not %d", got, len(out.waits), n)
			}
		})
	}
}

func TestRedisLocksAreMeasured(t *testing.T) {
	t.Parallel()
	addr := startRedis(t)
	works(t, addr, []impl{
		oursPlain, oursOnRueidis, oursFenced, oursSimple, oursFair, oursWrite, rawRedis,
		redsyncLock("redsync", 0), bsmLock("bsm-redislock", often), rueidisLock,
	})
	admin := connectRedis(t, addr)
	before := commands(t, admin, all)
	must(t, admin.Eval(background, "return redis.call('set', KEYS[1], 1)", []string{"it"}).Err())
	if n := commands(t, admin, all) - before; n != 2 {
		t.Errorf("%d commands counted, not a script and the one in it", n)
	}
}

func TestTheUpkeepOfHeldRedisLocksIsMeasured(t *testing.T) {
	t.Parallel()
	u := keep(t, 50, 4*time.Second, lease.WithTTL(6*time.Second))
	if u.scripts < 1 || u.server <= 0 || processTime() > 0 && u.client <= 0 {
		t.Errorf("%+v", u)
	}
}

func TestTheSubscriptionsOfWaitersAreMeasured(t *testing.T) {
	t.Parallel()
	// The holder hears of forced unlocks, by a connection and a channel of its own.
	if connections, channels := wait(t, 10, 3); connections != 2 || channels < 10 || channels > 2*10 {
		t.Errorf("%d connections, %d channels", connections, channels)
	}
}

func TestEtcdLocksAreMeasured(t *testing.T) {
	t.Parallel()
	addr := startEtcd(t)
	works(t, addr, etcdKinds)
	for _, k := range etcdKinds {
		name := fresh()
		took, err := alternate([2]contender{k.open(t, addr, name), k.open(t, addr, name)}, time.Millisecond, 3)
		must(t, err)
		if len(took) != 3 {
			t.Errorf("%s: %d hand-overs, not 3", k.name, len(took))
		}
	}
}

func TestZooKeeperLocksAreMeasured(t *testing.T) {
	t.Parallel()
	z := testbed.StartZooKeeper(t)
	works(t, z.Addr(), zooKeeperKinds)
	const waiters = 5
	for _, k := range zooKeeperKinds {
		h := crowd(t, z, k, waiters, 2)
		least, most := 1.0, 2.0 // the next one, and the holder, who watches what he has
		if strings.HasSuffix(k.name, "ephemeral") {
			least, most = waiters, waiters+1
		}
		if h.wakeUps < least || h.wakeUps > most {
			t.Errorf("%s: %v wake-ups for a release", k.name, h.wakeUps)
		}
	}
}

func TestSQLLocksAreMeasured(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dsn := d.serve(t)
			must(t, selectOne(openSQL(t, d.driver, dsn))(background))
			works(t, dsn, d.inSQL())
		})
	}
}

func TestAContestTellsWhoBargedAndWhoWaited(t *testing.T) {
	// No goroutine can have the lock twice in a row, so each acquisition has waited.
	turn := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	turn[0] <- struct{}{}
	out, err := contest{hold: time.Millisecond}.run(inTurns(turn), 10)
	must(t, err)
	if fmt.Sprint(out.counts) != "[5 5]" || out.share() != 1 {
		t.Errorf("counts %v", out.counts)
	}
	if len(out.waits) < 5 || quantile(out.waits, 0) <= 0 {
		t.Errorf("hand-overs %v", out.waits)
	}
	if out.barged > 1 {
		t.Errorf("%d barged", out.barged)
	}
}

// inTurns returns contenders that have a lock in turns.
func inTurns(turn [2]chan struct{}) []contender {
	cs := make([]contender, 2)
	for i := range cs {
		cs[i] = contender{
			lock: func(ctx context.Context) error {
				select {
				case <-turn[i]:
				case <-ctx.Done():
				}
				return ctx.Err()
			},
			unlock: func(context.Context) error {
				turn[1-i] <- struct{}{}
				return nil
			},
		}
	}
	return cs
}

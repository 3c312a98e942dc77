package k8slock_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

var changes = flag.Int("changes", 300, "how often leaders of client-go and locks take turns")

// election are the settings of client-go's candidates.
type election struct {
	id      string
	lease   time.Duration
	release bool // when its ctx ends
}

// run has a candidate of client-go take part until ctx ends, or it has led and lost. It calls lead
// when it is the leader.
func (e election) run(tb testing.TB, ctx context.Context, c coordinationv1client.LeasesGetter, name string,
	lead func(ctx context.Context)) {
	candidate, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     c,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.id},
		},
		LeaseDuration: e.lease, RenewDeadline: e.lease * 2 / 3, RetryPeriod: min(e.lease/50, 100*time.Millisecond),
		ReleaseOnCancel: e.release,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: func() {}},
	})
	if assert.NoError(tb, err) {
		candidate.Run(ctx)
	}
}

// The flag -changes sets how often the holder changes. The leaders release at once, so that the
// test is short. No leader is out of time, since a lease is long.
func TestElectionsAndLocksExcludeEachOther(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	direct := connect(t, k)
	const name = "it"
	var left atomic.Int64
	left.Store(int64(*changes))
	var mu sync.Mutex // of what follows: the lock itself excludes, but the race detector does not know
	var token uint64
	var holders []string
	enter := func(who string, n func() uint64) {
		if !assert.True(t, mu.TryLock(), "%s is not alone", who) {
			return
		}
		defer mu.Unlock()
		last := token
		token = n()
		if len(holders) > 0 {
			assert.Greater(t, token, last, "the token of %s", who)
			if holders[len(holders)-1] != who {
				left.Add(-1)
			}
		}
		holders = append(holders, who)
	}
	var wg sync.WaitGroup
	for i := range 3 {
		// Its requests are not delayed by client-go's own limit.
		cfg := config(t, k)
		cfg.QPS = -1
		candidate := dial(t, cfg)
		wg.Go(func() {
			for left.Load() > 0 {
				ctx, cancel := context.WithTimeout(background, 2*long)
				e := election{id: fmt.Sprint("candidate-", i), lease: long, release: true}
				e.run(t, ctx, candidate, name, func(context.Context) {
					defer cancel()
					enter(e.id, func() uint64 {
						o, err := direct.Leases(namespace).Get(background, name, metav1.GetOptions{})
						if !assert.NoError(t, err) {
							return 0
						}
						return uint64(*o.Spec.LeaseTransitions)
					})
				})
				cancel()
			}
		})
		l := open(t, connect(t, k)).Mutex(name)
		wg.Go(func() {
			owner := adaptertest.Owner()
			for left.Load() > 0 {
				if !assert.NoError(t, l.LockContext(owner)) {
					return
				}
				h, err := l.Hold(owner)
				if assert.NoError(t, err) {
					enter(fmt.Sprint("lock-", i), h.Token)
				}
				if !assert.NoError(t, l.UnlockContext(owner)) {
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d holders, %d of them others than the one before", len(holders), int64(*changes)-left.Load())
	for _, kind := range []string{"candidate-", "lock-"} {
		n := 0
		for _, who := range holders {
			if strings.HasPrefix(who, kind) {
				n++
			}
		}
		require.Greater(t, n, *changes/20, kind)
	}
}

// A candidate compares renewTime in whole seconds. Of renewals each 300 ms, it would see one each
// 0.9 or 1.2 s.
func TestARenewedHoldIsNeverTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		owner := adaptertest.Owner()
		l := open(t, f.client(), caslock.WithTTL(900*time.Millisecond)).Mutex("it")
		h := adaptertest.Hold(t, l, owner)
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		election{id: "candidate", lease: time.Second}.run(t, ctx, f.client(), "it", func(context.Context) {
			t.Error("the candidate leads while the lock is held")
		})
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestARenewingLeaderIsNeverTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		leads, ended := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(background)
		go func() {
			defer close(ended)
			election{id: "candidate", lease: 15 * time.Second}.run(t, ctx, f.client(), "it",
				func(context.Context) { close(leads) })
		}()
		<-leads
		l, owner := open(t, f.client()).Mutex("it"), adaptertest.Owner()
		waiting, stop := context.WithTimeout(owner, 2*time.Minute)
		defer stop()
		require.ErrorIs(t, l.LockContext(waiting), context.DeadlineExceeded)
		info, err := l.Inspect(background)
		require.NoError(t, err)
		require.Equal(t, "candidate", info.Holders[0].Label)
		cancel()
		<-ended
		require.EqualValues(t, 1, adaptertest.Hold(t, l, owner).Token(), "the leader had 0")
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestALockReplacesADeadLeader(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	ctx, cancel := context.WithCancel(background)
	var died time.Time
	election{id: "candidate", lease: 3 * time.Second}.run(t, ctx, connect(t, k), "it", func(context.Context) {
		died = time.Now()
		cancel()
	})
	l, owner := open(t, connect(t, k)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, owner)
	require.GreaterOrEqual(t, time.Since(died), 3*time.Second)
	require.EqualValues(t, 1, h.Token())
	require.NoError(t, l.UnlockContext(owner))
}

func TestALeaderReplacesADeadHolder(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	child := testbed.Child(t, "hold", k.Path())
	require.NotEqual(t, "0", child.Line(), "the token")
	child.Kill()
	api := connect(t, k)
	token := *read(t, api, "it").Spec.LeaseTransitions
	ctx, cancel := context.WithTimeout(background, long)
	defer cancel()
	led := false
	election{id: "candidate", lease: long, release: true}.run(t, ctx, api, "it", func(context.Context) {
		led = true
		cancel()
	})
	require.True(t, led)
	o := read(t, api, "it")
	require.Equal(t, token+1, *o.Spec.LeaseTransitions)
	require.Empty(t, *o.Spec.HolderIdentity)
	l, owner := open(t, api).Mutex("it"), adaptertest.Owner()
	info, err := l.Inspect(background)
	require.NoError(t, err)
	require.False(t, info.Held, "the annotation of the dead holder does not count")
	require.EqualValues(t, token+2, adaptertest.Hold(t, l, owner).Token())
	require.NoError(t, l.UnlockContext(owner))
}

// stopped is a client whose process can be stopped: its requests wait then, and do not end before
// the process goes on.
type stopped struct {
	http.RoundTripper
	on atomic.Pointer[chan struct{}] // closed while the process is running
}

func (s *stopped) WrappedRoundTripper() http.RoundTripper { return s.RoundTripper }

func (s *stopped) wrap(rt http.RoundTripper) http.RoundTripper {
	s.RoundTripper = rt
	return s
}

func (s *stopped) RoundTrip(r *http.Request) (*http.Response, error) {
	if on := s.on.Load(); on != nil {
		<-*on
	}
	return s.RoundTripper.RoundTrip(r)
}

// stop stops the process until the function that it returns is called.
func (s *stopped) stop() (goOn func()) {
	on := make(chan struct{})
	s.on.Store(&on)
	return func() { close(on) }
}

// overtake returns the hold of a lock that has replaced a stopped leader of client-go. The leader
// has gone on since then, and has ended.
func overtake(t *testing.T, e election, leader *stopped, c coordinationv1client.LeasesGetter,
	l *lease.Mutex, owner context.Context) locks.Hold {
	t.Helper()
	leads, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		e.run(t, background, c, "it", func(context.Context) { close(leads) })
	}()
	<-leads
	goOn := leader.stop()
	h := adaptertest.Hold(t, l, owner)
	goOn()
	<-ended
	return h
}

func TestAStoppedLeadersReleaseFreesAnothersHold(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	var leader stopped
	cfg := config(t, k)
	cfg.Wrap(leader.wrap)
	api := connect(t, k)
	l, owner := open(t, api, caslock.WithTTL(2*long)).Mutex("it"), adaptertest.Owner()
	e := election{id: "candidate", lease: 3 * time.Second, release: true}
	h := overtake(t, e, &leader, dial(t, cfg), l, owner)
	spec := read(t, api, "it").Spec
	require.Empty(t, *spec.HolderIdentity)
	require.EqualValues(t, h.Token(), *spec.LeaseTransitions)
	next, another := open(t, connect(t, k)).Mutex("it"), adaptertest.Owner()
	second := adaptertest.Hold(t, next, another)
	require.NoError(t, h.Err(), "the holder knows by its next renewal")
	require.Equal(t, h.Token()+1, second.Token(), "a resource that compares tokens refuses the first holder")
	require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	require.NoError(t, second.Err())
	require.NoError(t, next.UnlockContext(another))
}

func TestAHolderLearnsOfAnElectionsRelease(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		leader := &stopped{RoundTripper: f}
		l, owner := open(t, f.client()).Mutex("it"), adaptertest.Owner()
		e := election{id: "candidate", lease: 15 * time.Second, release: true}
		h := overtake(t, e, leader, f.clientBy(leader), l, owner)
		freed := time.Now()
		<-h.Lost()
		require.LessOrEqual(t, time.Since(freed), 10*time.Second, "a third of the lease")
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	})
}

func TestAStoppedLeaderWithoutReleaseTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		leader := &stopped{RoundTripper: f}
		l, owner := open(t, f.client()).Mutex("it"), adaptertest.Owner()
		h := overtake(t, election{id: "candidate", lease: 15 * time.Second}, leader, f.clientBy(leader), l, owner)
		time.Sleep(time.Hour) // of the bubble: the hold is renewed
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(owner))
	})
}

// lead has a candidate of client-go lead. The channel that it returns is closed when the leader
// stops.
func lead(t *testing.T, ctx context.Context, f *fake) (stops <-chan struct{}) {
	t.Helper()
	leads, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		e := election{id: "candidate", lease: 15 * time.Second}
		e.run(t, ctx, f.client(), "it", func(context.Context) { close(leads) })
	}()
	<-leads
	// The leader renews at once. After a ForceUnlock that renewal would acquire the lock again.
	synctest.Wait()
	return ended
}

func TestAForcedLeaderLeadsUntilItsRenewDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		stops := lead(t, background, f)
		l, owner := open(t, f.client()).Mutex("it"), adaptertest.Owner()
		_, err := l.ForceUnlock(background)
		require.NoError(t, err)
		h := adaptertest.Hold(t, l, owner)
		began := time.Now()
		<-stops
		require.InDelta(t, 10, time.Since(began).Seconds(), 0.2, "seconds with two holders")
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestAForcedLeaderAcquiresAFreeLockAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(background)
		stops := lead(t, ctx, f)
		l := open(t, f.client()).Mutex("it")
		_, err := l.ForceUnlock(background)
		require.NoError(t, err)
		time.Sleep(time.Minute) // of the bubble
		info, err := l.Inspect(background)
		require.NoError(t, err)
		require.Equal(t, "candidate", info.Holders[0].Label)
		cancel()
		<-stops
	})
}

package zklock_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// long is a session timeout that no test is meant to reach. A renewal comes after a third of it. A
// request has half of it. Some tests wait for short.
const (
	long  = 3 * time.Minute
	short = 3 * time.Second
)

// states records the states of a client's session.
type states struct {
	mu  sync.Mutex
	all []zklock.State
}

func (s *states) option() zklock.Option {
	return zklock.WithState(func(st zklock.State) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, st)
	})
}

func (s *states) seen() []zklock.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// A hold that says it is valid was valid when it was asked, however busy the machine is. The margin
// is large so that Suspect is told, and the channel is closed, in time as well.
func TestAHolderLearnsOfItsLossFirst(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	troubles := map[string]func(p *leasetest.Proxy){
		"both directions": (*leasetest.Proxy).Cut,
		"replies":         (*leasetest.Proxy).CutReplies,
		"requests":        (*leasetest.Proxy).CutRequests,
	}
	for name, trouble := range troubles {
		for phase := range 3 {
			t.Run(name+" in phase "+strconv.Itoa(phase), func(t *testing.T) {
				t.Parallel()
				p := leasetest.NewProxy(t, s.Addr())
				var told states
				c := open(t, p.Addr(), timeout(4*short), zklock.WithMargin(short), told.option())
				path := "/" + strings.ReplaceAll(t.Name(), "/", "-")
				l, rival := c.Mutex(path), open(t, s.Addr()).Mutex(path)
				a, b := adaptertest.Owner(), adaptertest.Owner()
				h := adaptertest.Patiently(t, l, a)
				time.Sleep(time.Duration(phase) * 4 * short / 9) // renewals come each third
				granted := make(chan time.Time, 1)
				go func() {
					defer close(granted) // also after a failure
					if assert.NoError(t, rival.LockContext(b)) {
						at := time.Now()
						select {
						case <-h.Lost():
						default:
							assert.Fail(t, "Lost is not closed though a rival has the lock")
						}
						granted <- at
					}
				}()
				trouble(p)
				began := time.Now()
				valid := began
				for at := began; h.Err() == nil; at = time.Now() {
					valid = at
					require.Less(t, at.Sub(began), testbed.Hang, "it is not lost")
					time.Sleep(time.Millisecond)
				}
				require.ErrorIs(t, h.Err(), locks.ErrLost)
				<-h.Lost()
				require.Contains(t, told.seen(), zklock.Suspect)
				if name != "replies" { // while the server hears from the client, it keeps the session
					require.LessOrEqual(t, valid.Sub(<-granted), time.Duration(0), "overlap")
				}
				eventually(t, "Lost", func() bool { return c.State() == zklock.Lost })
				p.Heal()
				if name == "replies" {
					require.LessOrEqual(t, valid.Sub(<-granted), time.Duration(0), "overlap")
				}
				require.NoError(t, rival.UnlockContext(b))
				eventually(t, "a session", func() bool { return c.State() == zklock.Held })
				require.ErrorIs(t, h.Err(), locks.ErrLost, "a new session brings nothing back")
				require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
				next := adaptertest.Patiently(t, l, a)
				require.Greater(t, next.Token(), h.Token())
				require.NoError(t, l.UnlockContext(a))
			})
		}
	}
}

func TestAPartitionThatEndsInTimeLosesNothing(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	p := leasetest.NewProxy(t, s.Addr())
	c := open(t, p.Addr())
	l, other := c.Mutex("it"), open(t, s.Addr()).Mutex("other")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	adaptertest.Hold(t, other, b)
	got := make(chan error, 1)
	go func() { got <- c.Mutex("other").LockContext(a) }()
	connect(t, s.Addr()).queued("/other", 2)
	for range 3 {
		p.Refuse()
		eventually(t, "Suspect", func() bool { return c.State() == zklock.Suspect })
		p.Heal()
		eventually(t, "Held", func() bool { return c.State() == zklock.Held })
	}
	require.NoError(t, h.Err())
	p.Refuse()
	require.NoError(t, other.UnlockContext(b)) // while the waiter is not connected
	p.Heal()
	require.NoError(t, <-got)
	require.NoError(t, c.Mutex("other").UnlockContext(a))
	require.NoError(t, l.UnlockContext(a))
}

func TestAHoldSurvivesTheDeathOfTheLeader(t *testing.T) {
	t.Parallel()
	servers := testbed.StartZooKeepers(t, 3)
	var proxies []*leasetest.Proxy
	var addrs, direct []string
	for _, s := range servers {
		p := leasetest.NewProxy(t, s.Addr())
		proxies, addrs, direct = append(proxies, p), append(addrs, p.Addr()), append(direct, s.Addr())
	}
	c, rival := openAll(t, addrs), openAll(t, direct)
	l, waiter := c.Mutex("it"), rival.Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)

	// One of the proxies has the client's connection.
	for _, p := range proxies {
		p.Refuse()
		time.Sleep(50 * time.Millisecond) // it connects to another server
		require.NoError(t, h.Extend(a, time.Minute), "it works there")
		p.Heal()
	}
	require.NoError(t, h.Err())

	got := make(chan error, 1)
	go func() { got <- waiter.LockContext(b) }()
	connect(t, direct[0]).queued("/it", 2)
	for _, s := range servers {
		if s.Leads() {
			s.Kill()
			break
		}
	}
	select {
	case err := <-got:
		t.Fatalf("granted (%v) while held", err)
	case <-time.After(time.Second):
	}
	eventually(t, "service", func() bool { return h.Extend(a, time.Minute) == nil })
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, <-got)
	next, err := waiter.Hold(b)
	require.NoError(t, err)
	require.Greater(t, next.Token(), h.Token())
	require.NoError(t, waiter.UnlockContext(b))
}

func TestALostAcquisitionReplyLeavesOneNode(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	text := map[string]string{"mutex": "-lock-", "semaphore": "-lease-", "write": "-__WRIT__", "ephemeral": "/node-"}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := connect(t, s.Addr())
			p := leasetest.NewProxy(t, s.Addr())
			l := kind.lock(open(t, p.Addr()), "/node-"+name)
			a := adaptertest.Owner()
			adaptertest.Hold(t, l, a) // makes the directory
			require.NoError(t, l.UnlockContext(a))
			p.ResetReply(text[name], 1)
			h := adaptertest.Hold(t, l, a)
			require.Equal(t, 1, p.Drops())
			require.NoError(t, h.Err())
			if name != "ephemeral" {
				require.Len(t, direct.list("/node-"+name+kind.dir), 1, "it was found again")
			}
			require.NoError(t, l.UnlockContext(a))
			if name != "ephemeral" {
				require.Empty(t, direct.list("/node-"+name+kind.dir))
			}
		})
	}
}

func TestAnEarlierSessionsNodeIsNotUsed(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	p := leasetest.NewProxy(t, s.Addr())
	direct.directory("/it")
	c := open(t, p.Addr(), timeout(4*short)) // a request has half of it, on a busy machine too
	l := c.Mutex("it")
	got := make(chan error, 1)
	a := adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.DropReply("-lock-", 1)
	go func() { got <- l.LockContext(a) }()
	direct.queued("/it", 1)
	first := direct.list("/it")[0]
	p.Refuse()
	direct.queued("/it", 0)
	p.Heal()
	if err := <-got; err != nil { // it was not connected for half of the session timeout
		require.NoError(t, l.LockContext(a))
	}
	names := direct.list("/it")
	require.Len(t, names, 1)
	require.NotEqual(t, first, names[0])
	require.NoError(t, l.UnlockContext(a))
	direct.queued("/it", 0)
}

func TestAFailedDeletionOfANodeIsRepeated(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	p := leasetest.NewProxy(t, s.Addr())
	brief := zklock.WithLeaseOptions(lease.WithReleaseTimeout(short))
	l := open(t, p.Addr(), brief).Mutex("it")
	a := adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	p.Refuse()
	require.Error(t, l.UnlockContext(a), "it says so")
	require.Len(t, direct.list("/it"), 1)
	p.Heal()
	direct.queued("/it", 0)
	require.NoError(t, l.LockContext(a))
	require.NoError(t, l.UnlockContext(a))
}

func TestAnEarlyLossLeavesNoNode(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	p := leasetest.NewProxy(t, s.Addr())
	// The holder is told long before the server ends the session.
	l := open(t, p.Addr(), timeout(16*time.Second), zklock.WithMargin(7*time.Second)).Mutex("it")
	a := adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	p.Refuse()
	<-h.Lost()
	require.Len(t, direct.list("/it"), 1)
	p.Heal()
	direct.queued("/it", 0)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
}

func TestTokensGrowAfterAContainersRemoval(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	l := open(t, s.Addr()).Mutex("/deep/down/it")
	a := adaptertest.Owner()
	last := uint64(0)
	for range 2 {
		h := adaptertest.Hold(t, l, a)
		require.Greater(t, h.Token(), last)
		last = h.Token()
		names := direct.list("/deep/down/it")
		require.Len(t, names, 1)
		require.True(t, strings.HasSuffix(names[0], "-lock-0000000000"), "numbers begin anew")
		require.NoError(t, l.UnlockContext(a))
		eventually(t, "the container is reaped", func() bool {
			there, _, err := direct.Exists("/deep")
			return err == nil && !there
		})
	}
}

func TestAContainerMayVanishBetweenAnyRequests(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	dirs := []string{"/deep", "/deep/down"}
	for name := range kinds {
		if name != "ephemeral" { // its node is no directory
			dirs = append(dirs, "/deep/down/"+name, "/deep/down/"+name+"/locks", "/deep/down/"+name+"/leases")
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(b, a) }) // the lower ones first
	stop := make(chan struct{})
	var reaper, wg sync.WaitGroup
	var removed atomic.Int32
	reaper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, dir := range dirs {
				if direct.Delete(dir, -1) == nil {
					removed.Add(1)
				}
			}
		}
	})
	for name, kind := range kinds {
		one, two := kind.lock(open(t, s.Addr()), "/deep/down/"+name), kind.lock(open(t, s.Addr()), "/deep/down/"+name)
		for _, l := range []*lease.Mutex{one, two} {
			a := adaptertest.Owner()
			wg.Go(func() {
				for range 20 {
					assert.NoError(t, l.LockContext(a), name)
					assert.NoError(t, l.UnlockContext(a), name)
					ok, err := l.TryLockContext(a)
					assert.NoError(t, err, name)
					if ok {
						assert.NoError(t, l.UnlockContext(a), name)
					}
				}
			})
		}
	}
	wg.Wait()
	close(stop)
	reaper.Wait()
	require.NotZero(t, removed.Load())
}

func TestAKilledProcessFreesItsLocksBySession(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testbed.Child(t, "hold", s.Addr(), (3 * short).String(), name, "/"+name)
			token, err := strconv.ParseUint(p.Line(), 10, 64)
			require.NoError(t, err)
			l := kind.lock(open(t, s.Addr()), "/"+name)
			a := adaptertest.Owner()
			ok, err := l.TryLockContext(a)
			require.NoError(t, err)
			require.False(t, ok)
			p.Kill()
			began := time.Now()
			h := adaptertest.Hold(t, l, a)
			require.Less(t, time.Since(began), testbed.Hang)
			require.Greater(t, h.Token(), token)
			require.NoError(t, l.UnlockContext(a))
		})
	}
}

func TestAPausedProcessLearnsOfItsLossFirst(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	p := testbed.Child(t, "hold", s.Addr(), short.String(), "mutex", "/it")
	token, err := strconv.ParseUint(p.Line(), 10, 64)
	require.NoError(t, err)
	p.Pause()
	l := open(t, s.Addr()).Mutex("it")
	a := adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	require.Greater(t, h.Token(), token, "a resource that looks refuses the old one")
	p.Say("")
	p.Resume()
	require.Equal(t, "false", p.Line(), "it regards the lock as held")
	require.Equal(t, "false", p.Line(), "its unlock does not tell")
	require.NoError(t, h.Err())
	require.Len(t, connect(t, s.Addr()).list("/it"), 1)
	require.NoError(t, l.UnlockContext(a))
}

func TestCancelledWaitersReturnAtOnceAndLeaveNothing(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			holder, a := kind.lock(open(t, s.Addr()), "/"+name), adaptertest.Owner()
			adaptertest.Hold(t, holder, a)
			var clients []*zklock.Client
			for range 8 {
				clients = append(clients, open(t, s.Addr()))
			}
			gone := errors.New("gone")
			var wg sync.WaitGroup
			for i := range 1000 {
				wg.Go(func() {
					ctx, cancel := context.WithCancelCause(adaptertest.Owner())
					after := time.AfterFunc(rand.N(300*time.Millisecond), func() { cancel(gone) })
					defer after.Stop()
					err := kind.lock(clients[i%8], "/"+name).LockContext(ctx)
					assert.ErrorIs(t, err, gone)
				})
			}
			wg.Wait()
			want := 1
			if name == "ephemeral" {
				want = 0
			}
			direct.queued("/"+name+kind.dir, want)
			if name == "semaphore" {
				direct.queued("/"+name+"/locks", 0)
			}
			require.NoError(t, holder.UnlockContext(a))
			require.NoError(t, holder.LockContext(a))
			require.NoError(t, holder.UnlockContext(a))
		})
	}
}

func TestACancelledWaiterReturnsWithoutAServer(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	p := leasetest.NewProxy(t, s.Addr())
	direct := connect(t, s.Addr())
	direct.directory("/it")
	l := open(t, p.Addr()).Mutex("it")
	a := adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.CutReplies()
	ctx, cancel := context.WithCancel(adaptertest.Owner())
	got := make(chan error, 1)
	go func() { got <- l.LockContext(ctx) }()
	direct.queued("/it", 1)
	began := time.Now()
	cancel()
	require.ErrorIs(t, <-got, context.Canceled)
	require.Less(t, time.Since(began), long/3)
	p.Reset()
	p.Heal()
	direct.queued("/it", 0)
}

func TestACancelledCallsLateAnswerLeavesNothing(t *testing.T) {
	t.Parallel()
	const late = 2 * time.Second
	s := zklock.LendServer(t)
	for name, kind := range kinds {
		for how, acquire := range map[string]func(l *lease.Mutex, ctx context.Context) error{
			"wait": (*lease.Mutex).LockContext,
			"try": func(l *lease.Mutex, ctx context.Context) error {
				_, err := l.TryLockContext(ctx)
				return err
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				direct := connect(t, s.Addr())
				p := leasetest.NewProxy(t, s.Addr())
				path := "/late-" + name + "-" + how
				l, a := kind.lock(open(t, p.Addr()), path), adaptertest.Owner()
				adaptertest.Hold(t, l, a)
				require.NoError(t, l.UnlockContext(a))
				ctx, cancel := context.WithCancel(adaptertest.Owner())
				p.Delay(late)
				asked := p.Requests()
				got := make(chan error, 1)
				go func() { got <- acquire(l, ctx) }()
				if how == "wait" {
					eventually(t, "a node", func() bool { // the answer comes later
						there, st, err := direct.Exists(path)
						if kind.dir != "" {
							there, st, err = direct.Exists(path + "/locks")
						}
						return err == nil && there && (name == "ephemeral" || st.NumChildren > 0)
					})
				} else {
					eventually(t, "a request", func() bool { return p.Requests() > asked })
				}
				cancel()
				require.ErrorIs(t, <-got, context.Canceled)
				free := func() bool {
					there, _, err := direct.Exists(path)
					if name != "ephemeral" {
						there = len(direct.list(path+kind.dir))+len(direct.list(path+"/locks")) > 0
					}
					return err == nil && !there
				}
				time.Sleep(3*late + late/3) // longer than the delay of three answers
				eventually(t, "an empty lock", free)
				p.Heal()
				require.NoError(t, l.LockContext(a))
				require.NoError(t, l.UnlockContext(a))
				eventually(t, "an empty lock", free)
			})
		}
	}
}

// Answers come at the moment when a call is given up, or some time later, as on a busy machine.
func TestReadersAndWritersThatGiveUpLeaveNothing(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	p := leasetest.NewProxy(t, s.Addr())
	rw := open(t, p.Addr()).RWMutex("it")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 12 {
				l := read(rw)
				if (g+i)%3 == 0 {
					l = write(rw)
				}
				if g == 0 {
					p.Delay(rand.N(80 * time.Millisecond)) // more and less than an abandoned call waits
				}
				ctx, cancel := context.WithTimeout(adaptertest.Owner(), rand.N(200*time.Millisecond))
				if l.LockContext(ctx) == nil {
					assert.NoError(t, l.UnlockContext(ctx))
				}
				cancel()
			}
		})
	}
	wg.Wait()
	p.Heal()
	direct.queued("/it", 0)
	a := adaptertest.Owner()
	for _, l := range []*lease.Mutex{write(rw), read(rw)} {
		adaptertest.Hold(t, l, a)
		require.NoError(t, l.UnlockContext(a))
	}
}

func TestCloseEndsHoldsAndWaiters(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	c := open(t, s.Addr())
	other, a := open(t, s.Addr()).Mutex("other"), adaptertest.Owner()
	adaptertest.Hold(t, other, a)
	var holds []locks.Hold
	for name, kind := range kinds {
		holds = append(holds, adaptertest.Hold(t, kind.lock(c, "/"+name), adaptertest.Owner()))
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { assert.ErrorIs(t, c.Mutex("mutex").LockContext(adaptertest.Owner()), locks.ErrClosed) })
		wg.Go(func() { assert.ErrorIs(t, c.Mutex("other").LockContext(adaptertest.Owner()), locks.ErrClosed) })
	}
	direct.queued("/other", 2)
	require.NoError(t, c.Close(background))
	wg.Wait()
	for _, h := range holds {
		require.ErrorIs(t, h.Err(), locks.ErrLost)
	}
	for name, kind := range kinds {
		require.ErrorIs(t, kind.lock(c, "/"+name).LockContext(adaptertest.Owner()), locks.ErrClosed)
		direct.queued("/"+name+kind.dir, 0)
	}
	require.Len(t, direct.list("/other"), 1)
	require.Equal(t, zklock.Lost, c.State())
	require.NoError(t, other.UnlockContext(a))
	require.NoError(t, c.Close(background), "again")
}

func TestCloseDoesNotWaitForAGoneServer(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	p := leasetest.NewProxy(t, s.Addr())
	c := open(t, p.Addr())
	adaptertest.Hold(t, c.Mutex("it"), adaptertest.Owner())
	p.Cut()
	ctx, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.Error(t, c.Close(ctx))
	require.Less(t, time.Since(began), long/3)
	p.Reset()
}

func TestBrokenConnectionsSellNoTicketTwice(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	for name := range kinds {
		t.Run(name, func(t *testing.T) {
			p := leasetest.NewProxy(t, s.Addr())
			retries := testbed.Tickets{
				Role: "buy",
				Args: []string{p.Addr(), name},
				Trouble: func() {
					time.Sleep(400 * time.Millisecond)
					p.Reset()
				},
			}.Run(t)
			t.Log("retries:", retries)
		})
	}
}

func TestWithoutAServerThereIsNoClient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := zklock.New(ctx, []string{"127.0.0.1:" + strconv.Itoa(testbed.Port(t))})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), testbed.Hang)
}

func TestAFailedConnectLeavesASilentServerClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := goleak.IgnoreCurrent()
		ctx, cancel := context.WithCancel(t.Context())
		server, dialed := net.Pipe()
		go io.Copy(io.Discard, server)
		_, err := zklock.New(ctx, []string{"silent"}, zklock.WithDialer(
			func(context.Context, string, string) (net.Conn, error) {
				cancel()
				return dialed, nil
			}))
		require.ErrorIs(t, err, context.Canceled)
		// The client of ZooKeeper waits a second if the session ends while it dials. It would wait
		// for an answer of the server for two thirds of the session.
		time.Sleep(2 * time.Second)
		require.NoError(t, goleak.Find(others))
	})
}

func TestAWaiterOnAnotherServerMissesNothing(t *testing.T) {
	t.Parallel()
	servers := testbed.StartZooKeepers(t, 3)
	var proxies []*leasetest.Proxy
	var addrs []string
	for _, s := range servers {
		p := leasetest.NewProxy(t, s.Addr())
		proxies, addrs = append(proxies, p), append(addrs, p.Addr())
	}
	seldom := zklock.WithLeaseOptions(lease.WithPoll(time.Hour)) // only a watch wakes the waiter
	holder, c := open(t, servers[0].Addr()).Mutex("it"), openAll(t, addrs, seldom)
	look := connect(t, servers[0].Addr())
	l, a, b := c.Mutex("it"), adaptertest.Owner(), adaptertest.Owner()
	for i := range 6 {
		before := adaptertest.Hold(t, holder, a).Token()
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		look.queued("/it", 2)
		serving := slices.IndexFunc(proxies, func(p *leasetest.Proxy) bool { return p.Connections() > 0 })
		require.GreaterOrEqual(t, serving, 0)
		proxies[serving].Refuse()
		if i%2 == 0 { // it moves before the release, else during it
			eventually(t, "another server", func() bool {
				return c.State() == zklock.Held && slices.ContainsFunc(proxies, func(p *leasetest.Proxy) bool {
					return p != proxies[serving] && p.Connections() > 0
				})
			})
		}
		require.NoError(t, holder.UnlockContext(a))
		select {
		case err := <-got:
			require.NoError(t, err)
		case <-time.After(testbed.Hang):
			t.Fatal("it was not woken")
		}
		h, err := l.Hold(b)
		require.NoError(t, err)
		require.Greater(t, h.Token(), before)
		require.NoError(t, l.UnlockContext(b))
		proxies[serving].Heal()
	}
}

func TestHoldsAndWaitsSurviveAServersRestart(t *testing.T) {
	t.Parallel()
	s := testbed.StartZooKeeper(t)
	mutex := func() *lease.Mutex { return open(t, s.Addr()).Mutex("it") }
	l, waiter := mutex(), mutex()
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	direct := connect(t, s.Addr())
	first := direct.list("/it")[0]
	got := make(chan error, 1)
	go func() { got <- waiter.LockContext(b) }()
	direct.watched(s, "/it/"+first, 2)
	s.Kill()
	s.Restart()
	eventually(t, "service", func() bool { return h.Extend(a, time.Minute) == nil })
	select {
	case err := <-got:
		t.Fatalf("granted (%v) while held", err)
	default:
	}
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, <-got)
	next, err := waiter.Hold(b)
	require.NoError(t, err)
	require.Greater(t, next.Token(), h.Token())
	require.NoError(t, waiter.UnlockContext(b))
}

func TestAWaiterOutlastsItsSession(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	p := leasetest.NewProxy(t, s.Addr())
	holder, a := open(t, s.Addr()).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	first := direct.list("/it")[0]
	often := zklock.WithLeaseOptions(lease.WithPoll(50 * time.Millisecond))
	c, b := open(t, p.Addr(), timeout(3*short), often), adaptertest.Owner()
	got := make(chan error, 1)
	go func() { got <- c.Mutex("it").LockContext(b) }()
	direct.watched(s, "/it/"+first, 2)
	asked := p.Requests()
	eventually(t, "a later request: it waits", func() bool { return p.Requests() > asked+2 })
	p.Refuse()
	direct.queued("/it", 1) // its node has gone with its session
	select {
	case err := <-got:
		t.Fatalf("it waits no more: %v", err)
	case <-time.After(2 * short): // its requests fail after half of that
	}
	p.Heal()
	direct.queued("/it", 2)
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, c.Mutex("it").UnlockContext(b))
}

// The end of a session settles all its requests.
func TestCloseKnowsThatTheEndOfItsSessionEndsDoubts(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	p := leasetest.NewProxy(t, s.Addr())
	direct.directory("/it")
	c := open(t, p.Addr(), timeout(4*short))
	l, a := c.Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.CutReplies()
	require.ErrorContains(t, l.LockContext(a), "not connected to ZooKeeper")
	p.Heal()
	eventually(t, "a connection", func() bool { return c.State() == zklock.Held })
	require.NoError(t, c.Close(background))
	require.Empty(t, direct.list("/it"))
}

func TestCloseNeedsAnAnswerToTheEndOfItsSession(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	p := leasetest.NewProxy(t, s.Addr())
	direct.directory("/it")
	c := open(t, p.Addr(), zklock.WithLeaseOptions(lease.WithReleaseTimeout(time.Second)))
	adaptertest.Hold(t, c.Mutex("it"), adaptertest.Owner())
	p.CutReplies()
	require.ErrorContains(t, c.Close(background), "zklock: close: 0 of 1 holds released; ")
	direct.queued("/it", 0) // the server has ended the session nevertheless
}

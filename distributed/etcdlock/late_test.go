package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// pair is a client of a server, whose store a test asks directly. Each request of the client passes
// the test first.
type pair struct {
	*leasetest.Requests // the store of mutexes
	client              *etcdlock.Client
	direct              *clientv3.Client
	stores              []*leasetest.Requests // one for each kind of lock, the last one last

	mu     sync.Mutex
	method string
	pass   func(send func() error) error
}

func newPair(t *testing.T) *pair {
	t.Helper()
	s := lendServer(t)
	p := &pair{direct: connect(t, s.addr)}
	conn, err := dialWith([]grpc.DialOption{grpc.WithChainUnaryInterceptor(p.intercept)}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	p.client = open(t, conn, etcdlock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
		r := leasetest.NewRequests(s)
		p.stores = append(p.stores, r)
		return r
	})))
	p.Requests = p.stores[0]
	return p
}

func (p *pair) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	send := func() error { return invoke(ctx, method, req, reply, conn, opts...) }
	p.mu.Lock()
	pass := p.pass
	if pass == nil || !strings.HasSuffix(method, p.method) {
		p.mu.Unlock()
		return send()
	}
	p.pass = nil
	p.mu.Unlock()
	return pass(send)
}

// next has the next request of a method pass through f.
func (p *pair) next(method string, f func(send func() error) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.method, p.pass = method, f
}

// hold keeps the reply to the next request of a method until open is called. It tells when the
// server has carried it out.
func (p *pair) hold(t *testing.T, method string) (carriedOut <-chan struct{}, open func()) {
	done, gate := make(chan struct{}), make(chan struct{})
	p.next(method, func(send func() error) error {
		err := send()
		close(done)
		<-gate
		return err
	})
	open = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	return done, open
}

// refuse has the server refuse the next request of a method.
func (p *pair) refuse(method string) {
	p.next(method, func(func() error) error { return status.Error(codes.PermissionDenied, "not permitted") })
}

const (
	txn   = "KV/Txn"
	grant = "Lease/LeaseGrant"
)

func asks(name, acquisition string) driver.Request {
	return driver.Request{HoldID: driver.HoldID{Name: name, Acquisition: acquisition}, TTL: 10 * time.Second}
}

// outcome is the result of a request.
type outcome struct {
	driver.Reply
	err error
}

// enqueue sends a request in the background.
func (p *pair) enqueue(ctx context.Context, acquisition string) <-chan outcome {
	got := make(chan outcome, 1)
	go func() {
		r, err := p.Enqueue(ctx, asks("it", acquisition))
		got <- outcome{r, err}
	}()
	return got
}

// briefly returns a context that ends while other requests wait for the test.
func briefly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(background, 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// take takes the free lock for an acquisition.
func (p *pair) take(t *testing.T, acquisition string) {
	t.Helper()
	r, err := p.acquire(acquisition)
	require.NoError(t, err)
	require.True(t, r.Held)
}

// acquire is Acquire, asked again as the engine does: a busy machine may answer later than a
// request waits for.
func (p *pair) acquire(acquisition string) (r driver.Reply, err error) {
	for end := time.Now().Add(long); ; {
		r, err = p.Acquire(background, asks("it", acquisition))
		if err == nil || errors.Is(err, driver.ErrRefused) || time.Now().After(end) {
			return r, err
		}
	}
}

// holds checks that an acquisition has the lock, by one key, and releases it.
func (p *pair) holds(t *testing.T, acquisition string) {
	t.Helper()
	r, err := p.Lookup(background, asks("it", acquisition))
	require.NoError(t, err)
	require.True(t, r.Held)
	require.Len(t, keys(t, p.direct, "it/"), 1)
	require.True(t, p.give(t, acquisition))
	require.Empty(t, keys(t, p.direct, "it/"))
}

// give releases the lock for an acquisition, and reports whether the acquisition had it. It asks
// again as the engine does, because a busy machine may answer later than a request waits for.
func (p *pair) give(t *testing.T, acquisition string) (held bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		released, err := p.Release(background, asks("it", acquisition).HoldID)
		held = released.Held
		return err == nil
	}, long, time.Millisecond)
	return held
}

func TestAReleaseBesideRequestsLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for i := range 100 {
		id := asks("it", fmt.Sprint(i))
		var wg sync.WaitGroup
		for range 2 { // one of them is late
			wg.Go(func() { _, _ = p.Enqueue(background, id) })
		}
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		p.give(t, id.Acquisition)
		wg.Wait()
		p.give(t, id.Acquisition) // of the request that came after the first release
		queued(t, p.direct, "it/", 0)
	}
}

// A renewal of the session deletes again what is given up, perhaps ahead of the release.
func TestAReleaseBesideARenewalSaysThatItWasHeld(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.take(t, "1")
	held, err := etcdlock.ReleaseBehindARenewal(background, p.client, asks("it", "1").HoldID)
	require.NoError(t, err)
	require.True(t, held)
	require.Empty(t, keys(t, p.direct, "it/"))
	released, err := p.Release(background, asks("it", "1").HoldID)
	require.NoError(t, err)
	require.False(t, released.Held)
}

func TestAReleaseAfterALostReplySaysThatItWasHeld(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.take(t, "1")
	p.next("KV/DeleteRange", func(send func() error) error {
		require.NoError(t, send())
		return status.Error(codes.Unavailable, "the reply is lost")
	})
	_, err := p.Release(background, asks("it", "1").HoldID)
	require.Error(t, err)
	released, err := p.Release(background, asks("it", "1").HoldID)
	require.NoError(t, err)
	require.True(t, released.Held)
}

func TestTwoRequestsOfAnAcquisitionHaveOneKey(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for i := range 100 {
		id := fmt.Sprint(i)
		first, second := p.enqueue(background, id), p.enqueue(background, id)
		a, b := <-first, <-second
		require.NoError(t, a.err)
		require.NoError(t, b.err)
		require.True(t, a.Held)
		require.True(t, b.Held)
		require.Equal(t, a.Token, b.Token)
		p.holds(t, id)
	}
}

func TestTwoTriesOfAnAcquisitionHaveOneOutcome(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, err := p.acquire("holder")
	require.NoError(t, err)
	for i := range 100 {
		id := fmt.Sprint(i)
		held := make([]bool, 2)
		var wg sync.WaitGroup
		for i := range held {
			wg.Go(func() {
				r, err := p.acquire(id)
				assert.NoError(t, err)
				held[i] = r.Held
			})
		}
		time.Sleep(time.Duration(i) * 20 * time.Microsecond)
		p.give(t, "holder")
		wg.Wait()
		if held[0] || held[1] {
			p.holds(t, id)
		}
		require.Empty(t, keys(t, p.direct, "it/"))
		r, err := p.acquire("holder")
		require.NoError(t, err)
		require.True(t, r.Held)
	}
}

func TestACancelledRequestKeepsTheKeyOfAnother(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	carriedOut, open := p.hold(t, txn)
	first := p.enqueue(background, "a")
	<-carriedOut
	require.Error(t, (<-p.enqueue(briefly(t), "a")).err)
	open()
	r := <-first
	require.NoError(t, r.err)
	require.True(t, r.Held)
	p.holds(t, "a")
}

func TestARequestGoesOnAfterACancelledOne(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	carriedOut, open := p.hold(t, txn)
	ctx, cancel := context.WithCancel(background)
	first := p.enqueue(ctx, "a")
	<-carriedOut
	second := p.enqueue(background, "a")
	cancel()
	open()
	<-first // it may have its answer
	r := <-second
	require.NoError(t, r.err)
	require.Eventually(t, func() bool { // once the key of the first has gone
		r, err := p.Enqueue(background, asks("it", "a"))
		return err == nil && r.Held
	}, long, time.Millisecond)
	queued(t, p.direct, "it/", 1)
	p.holds(t, "a")
}

func TestATryAfterACancelledOneTakesAFreeLock(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	ctx, cancel := context.WithCancel(background)
	p.next(txn, func(func() error) error {
		cancel()
		return status.Error(codes.Unavailable, "lost")
	})
	_, err := p.Acquire(ctx, asks("it", "a"))
	require.Error(t, err)
	r, err := p.Acquire(background, asks("it", "a"))
	require.NoError(t, err)
	require.True(t, r.Held)
	p.holds(t, "a")
}

func TestARefusedRequestKeepsThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, err := p.Acquire(background, asks("it", "holder"))
	require.NoError(t, err)
	r, err := p.Enqueue(background, asks("it", "a"))
	require.NoError(t, err)
	require.False(t, r.Held)
	before := keys(t, p.direct, "it/")
	require.Len(t, before, 2)
	p.refuse(txn)
	_, err = p.Enqueue(background, asks("it", "a"))
	require.ErrorIs(t, err, driver.ErrRefused)
	_, err = p.Enqueue(background, asks("it", "a"))
	require.NoError(t, err)
	require.Equal(t, before, keys(t, p.direct, "it/"))
	_, err = p.Release(background, asks("it", "holder").HoldID)
	require.NoError(t, err)
	r, err = p.Enqueue(background, asks("it", "a"))
	require.NoError(t, err)
	require.True(t, r.Held)
	p.holds(t, "a")
}

func TestARefusedRequestKeepsTheHoldOfAnother(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	r, err := p.Enqueue(background, asks("it", "a"))
	require.NoError(t, err)
	require.True(t, r.Held)
	p.refuse(txn)
	_, err = p.Enqueue(background, asks("it", "a"))
	require.ErrorIs(t, err, driver.ErrRefused)
	p.holds(t, "a")
}

func TestARefusedRequestLeavesNoKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, err := p.direct.Put(background, "it/config", "data")
	require.NoError(t, err)
	first, second := p.enqueue(background, "a"), p.enqueue(background, "a")
	require.ErrorIs(t, (<-first).err, locks.ErrForeign)
	require.ErrorIs(t, (<-second).err, locks.ErrForeign)
	queued(t, p.direct, "it/", 1)
}

func TestALookupKeepsTheKeyOfARequestUnderWay(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	carriedOut, open := p.hold(t, txn)
	first := p.enqueue(background, "a")
	<-carriedOut
	ctx := briefly(t)
	context.AfterFunc(ctx, open)
	r, err := p.Lookup(ctx, asks("it", "a"))
	require.False(t, r.Held)
	require.Error(t, err, "it is not known yet")
	got := <-first
	require.NoError(t, got.err)
	require.True(t, got.Held)
	p.holds(t, "a")
}

func TestAReleaseEndsARequestWithoutASession(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	carriedOut, open := p.hold(t, grant)
	first := p.enqueue(background, "a")
	<-carriedOut
	released, err := p.Release(background, asks("it", "a").HoldID)
	require.NoError(t, err)
	require.False(t, released.Held)
	open()
	require.ErrorIs(t, (<-first).err, driver.ErrRefused)
	require.Empty(t, keys(t, p.direct, "it/"))
}

// halves are the stores of a read-write lock, which the owner of both acquisitions holds.
func (p *pair) halves(t *testing.T) (read, write *leasetest.Requests, reader, writer driver.Request) {
	t.Helper()
	name := p.client.RWMutex("it").WriteMutex().Name()
	read, write = p.stores[1], p.stores[2]
	reader, writer = asks(name, "reader"), asks(name, "writer")
	reader.Writer = writer.Acquisition
	for _, half := range []struct {
		store *leasetest.Requests
		req   driver.Request
	}{{write, writer}, {read, reader}} {
		r, err := half.store.Enqueue(background, half.req)
		require.NoError(t, err)
		require.True(t, r.Held)
	}
	return read, write, reader, writer
}

// says checks what Lookup and Renew say of an acquisition.
func says(t *testing.T, held bool, s *leasetest.Requests, req driver.Request) {
	t.Helper()
	r, err := s.Lookup(background, req)
	require.NoError(t, err)
	require.Equal(t, held, r.Held)
	renewed, err := s.Renew(background, []driver.HoldID{req.HoldID}, req.TTL)
	require.NoError(t, err)
	require.Equal(t, []bool{held}, renewed)
}

func TestAWriterThatReadsOnHoldsTheReadLockAlone(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	read, write, reader, writer := p.halves(t)
	says(t, true, write, writer)
	says(t, true, read, reader)
	released, err := write.Release(background, writer.HoldID)
	require.NoError(t, err)
	require.True(t, released.Held)
	says(t, false, write, writer)
	says(t, true, read, reader)
	released, err = write.Release(background, writer.HoldID)
	require.NoError(t, err)
	require.False(t, released.Held)
	says(t, true, read, reader)
	released, err = read.Release(background, reader.HoldID)
	require.NoError(t, err)
	require.True(t, released.Held)
	says(t, false, write, writer)
	says(t, false, read, reader)
	require.Empty(t, keys(t, p.direct, rwKeys))
}

func TestALateRequestToWriteLeavesTheReader(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	read, write, reader, writer := p.halves(t)
	_, err := write.Release(background, writer.HoldID)
	require.NoError(t, err)
	r, err := write.Enqueue(background, writer)
	require.False(t, r.Held)
	require.ErrorIs(t, err, driver.ErrRefused)
	r, err = write.Acquire(background, writer)
	require.False(t, r.Held)
	require.NoError(t, err)
	says(t, false, write, writer)
	says(t, true, read, reader)
	require.Len(t, keys(t, p.direct, rwKeys), 1)
	_, err = read.Release(background, reader.HoldID)
	require.NoError(t, err)
	require.Empty(t, keys(t, p.direct, rwKeys))
}

func TestALateRequestToReadKeepsTheReader(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	read, write, reader, writer := p.halves(t)
	_, err := write.Release(background, writer.HoldID)
	require.NoError(t, err)
	found, err := read.Lookup(background, reader)
	require.NoError(t, err)
	for _, ask := range []func(context.Context, driver.Request) (driver.Reply, error){read.Enqueue, read.Acquire} {
		r, err := ask(background, reader)
		require.NoError(t, err)
		require.True(t, r.Held)
		require.Equal(t, found.Token, r.Token)
	}
	_, err = read.Release(background, reader.HoldID)
	require.NoError(t, err)
	require.Empty(t, keys(t, p.direct, rwKeys))
}

func TestAWriterWhoseReleaseHasNoAnswerWritesNoMore(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	read, write, reader, writer := p.halves(t)
	p.next(txn, func(send func() error) error {
		require.NoError(t, send())
		return status.Error(codes.Internal, "the reply is lost")
	})
	_, err := write.Release(background, writer.HoldID)
	require.Error(t, err)
	require.NotErrorIs(t, err, driver.ErrRefused)
	says(t, false, write, writer)
	says(t, true, read, reader)
	released, err := write.Release(background, writer.HoldID)
	require.NoError(t, err)
	require.True(t, released.Held)
	says(t, true, read, reader)
	_, err = read.Release(background, reader.HoldID)
	require.NoError(t, err)
	require.Empty(t, keys(t, p.direct, rwKeys))
}

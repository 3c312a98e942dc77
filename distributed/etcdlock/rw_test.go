package etcdlock_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// rw returns both halves of the lock it, of a client of its own.
func rw(t *testing.T, s *server, opts ...etcdlock.Option) (read, write *lease.Mutex) {
	l := open(t, connect(t, s.addr), opts...).RWMutex("it")
	return l.ReadMutex(), l.WriteMutex()
}

const (
	rwKeys    = "it%rw/"
	readKeys  = rwKeys + "read/"
	writeKeys = rwKeys + "write/"
)

func TestReadersShareAndWritersExcludeInOtherProcesses(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	read, write := rw(t, s)
	read2, write2 := rw(t, s)
	a, b, c := adaptertest.Owner(), adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, read, a)
	require.True(t, adaptertest.Try(t, read2, b))
	require.Len(t, keys(t, direct, readKeys), 2)
	require.False(t, adaptertest.Try(t, write, c))
	require.False(t, adaptertest.Try(t, write2, c))
	got := adaptertest.Start(write2, c)
	queued(t, direct, writeKeys, 1)
	require.NoError(t, read.UnlockContext(a))
	require.NoError(t, read2.UnlockContext(b))
	require.NoError(t, adaptertest.Result(t, got))
	require.False(t, adaptertest.Try(t, read, a))
	require.False(t, adaptertest.Try(t, write, a))
	require.Len(t, keys(t, direct, rwKeys), 1, "a try leaves nothing")
	readers := []<-chan error{adaptertest.Start(read, a), adaptertest.Start(read, b), adaptertest.Start(read2, a)}
	queued(t, direct, readKeys, 3)
	require.NoError(t, write2.UnlockContext(c))
	for _, got := range readers {
		require.NoError(t, adaptertest.Result(t, got), "together")
	}
	require.NoError(t, read.UnlockContext(a))
	require.NoError(t, read.UnlockContext(b))
	require.NoError(t, read2.UnlockContext(a))
	require.Empty(t, keys(t, direct, rwKeys))
}

func TestReadersDoNotOvertakeAWriterThatWaits(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	read, _ := rw(t, s)
	_, write := rw(t, s)
	late, _ := rw(t, s)
	a, b, c := adaptertest.Owner(), adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, read, a)
	writer := adaptertest.Start(write, b)
	queued(t, direct, writeKeys, 1)
	require.False(t, adaptertest.Try(t, late, c))
	reader := adaptertest.Start(late, c)
	queued(t, direct, readKeys, 2)
	require.NoError(t, read.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, writer))
	require.Empty(t, reader)
	require.NoError(t, write.UnlockContext(b))
	require.NoError(t, adaptertest.Result(t, reader))
	require.NoError(t, late.UnlockContext(c))
}

func TestAReaderThatAsksToWriteIsRefused(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	read, write := rw(t, s)
	a := adaptertest.Owner()
	adaptertest.Hold(t, read, a)
	require.ErrorIs(t, write.LockContext(a), locks.ErrUpgrade)
	ok, err := write.TryLockContext(a)
	require.False(t, ok)
	require.ErrorIs(t, err, locks.ErrUpgrade)
	require.NoError(t, read.UnlockContext(a))
	adaptertest.Hold(t, write, a)
	require.NoError(t, write.UnlockContext(a))
}

func TestAWriterMayReadAndBecomeAReader(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	read, write := rw(t, s, term(6*short))
	read2, write2 := rw(t, s, term(6*short))
	a, b, c := adaptertest.Owner(), adaptertest.Owner(), adaptertest.Owner()

	w := adaptertest.Hold(t, write, a)
	waits := adaptertest.Start(write2, b) // for its turn, which is after what a becomes
	queued(t, direct, writeKeys, 2)
	r := adaptertest.Hold(t, read, a)
	require.Equal(t, w.Token(), r.Token())
	adaptertest.Hold(t, read, a)
	require.NoError(t, write.LockContext(a), "the writer re-enters")
	require.NoError(t, write.UnlockContext(a))
	require.Len(t, keys(t, direct, rwKeys), 2)
	require.False(t, adaptertest.Try(t, read2, c), "a still writes")
	require.NoError(t, write.UnlockContext(a))
	require.ErrorIs(t, write.UnlockContext(a), locks.ErrNotHeld)
	require.ErrorIs(t, write.LockContext(a), locks.ErrUpgrade)
	time.Sleep(7 * short) // the reader is renewed
	require.NoError(t, r.Err())
	require.Empty(t, waits, "a reads still")
	require.NoError(t, read.UnlockContext(a))
	require.Empty(t, waits)
	require.NoError(t, read.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, waits))
	require.NoError(t, write2.UnlockContext(b))
	require.Empty(t, keys(t, direct, rwKeys))

	// Others join a reader that was a writer.
	adaptertest.Hold(t, write, a)
	waits = adaptertest.Start(read2, c)
	queued(t, direct, readKeys, 1)
	adaptertest.Hold(t, read, a)
	require.Empty(t, waits)
	require.NoError(t, write.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, waits))
	adaptertest.Hold(t, read2, b)
	require.False(t, adaptertest.Try(t, write2, adaptertest.Owner()))
	require.NoError(t, read.UnlockContext(a))
	require.NoError(t, read2.UnlockContext(b))
	require.NoError(t, read2.UnlockContext(c))
	require.Empty(t, keys(t, direct, rwKeys))

	// The reader may go first.
	adaptertest.Hold(t, write, a)
	adaptertest.Hold(t, read, a)
	require.NoError(t, read.UnlockContext(a))
	require.False(t, adaptertest.Try(t, read2, b))
	require.NoError(t, write.UnlockContext(a))
	require.True(t, adaptertest.Try(t, write2, b))
	require.NoError(t, write2.UnlockContext(b))
}

func TestTheNextLocalWriterAwaitsADowngradedOne(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	read, write := rw(t, s)
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, write, a)
	adaptertest.Hold(t, read, a)
	got := adaptertest.Start(write, b)
	require.Eventually(t, func() bool { return write.QueueLength() == 1 }, long, time.Millisecond)
	require.NoError(t, write.UnlockContext(a))
	queued(t, connect(t, s.addr), writeKeys, 2)
	require.Empty(t, got)
	require.NoError(t, read.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, write.UnlockContext(b))
}

func TestAReadingWriterLosesBothHoldsTogether(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	read, write := rw(t, s)
	a := adaptertest.Owner()
	w := adaptertest.Hold(t, write, a)
	r := adaptertest.Hold(t, read, a)
	time.Sleep(time.Second) // until it is watched
	_, err := direct.Revoke(background, leaseOf(t, direct, keys(t, direct, rwKeys)[0]))
	require.NoError(t, err)
	adaptertest.AwaitLoss(t, w)
	adaptertest.AwaitLoss(t, r)
	require.ErrorIs(t, write.UnlockContext(a), locks.ErrLost)
	require.ErrorIs(t, read.UnlockContext(a), locks.ErrLost)
	adaptertest.Hold(t, write, a)
	require.NoError(t, write.UnlockContext(a))
}

func TestManyClientsReadersAndWritersExcludeEachOther(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	var readers, writers, most, reads, writes atomic.Int32
	var wg sync.WaitGroup
	for range 3 {
		read, write := rw(t, s)
		for i := range 3 {
			wg.Go(func() {
				a := adaptertest.Owner()
				for n := range 15 {
					switch {
					case i > 0:
						assert.NoError(t, read.LockContext(a))
						most.Store(max(most.Load(), readers.Add(1)))
						assert.Zero(t, writers.Load())
						time.Sleep(time.Millisecond)
						readers.Add(-1)
						reads.Add(1)
						assert.NoError(t, read.UnlockContext(a))
					default:
						assert.NoError(t, write.LockContext(a))
						assert.EqualValues(t, 1, writers.Add(1))
						assert.Zero(t, readers.Load())
						writes.Add(1)
						if n%2 == 0 {
							writers.Add(-1)
							assert.NoError(t, write.UnlockContext(a))
							continue
						}
						assert.NoError(t, read.LockContext(a))
						writers.Add(-1)
						readers.Add(1)
						assert.NoError(t, write.UnlockContext(a))
						assert.Zero(t, writers.Load())
						readers.Add(-1)
						assert.NoError(t, read.UnlockContext(a))
					}
				}
			})
		}
	}
	wg.Wait()
	require.EqualValues(t, 90, reads.Load())
	require.EqualValues(t, 45, writes.Load())
	require.Greater(t, most.Load(), int32(1), "readers are inside together")
	require.Empty(t, keys(t, connect(t, s.addr), rwKeys))
}

package redislock_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/testbed"
)

// shim adds to the time of day what a file says, in nanoseconds. It allocates nothing, since the allocator of the program asks
// for the time too.
const shim = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *offset;

__attribute__((constructor)) static void map(void) {
	const char *path = getenv("CLOCK_OFFSET");
	int fd = path ? open(path, O_RDONLY) : -1;
	if (fd < 0) return;
	void *p = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED) offset = p;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
	int r = syscall(SYS_clock_gettime, id, ts);
	if (r == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		long long n = ts->tv_nsec + *offset % 1000000000;
		ts->tv_sec += *offset / 1000000000;
		if (n < 0) { n += 1000000000; ts->tv_sec--; }
		if (n >= 1000000000) { n -= 1000000000; ts->tv_sec++; }
		ts->tv_nsec = n;
	}
	return r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
	struct timespec ts;
	int r = clock_gettime(CLOCK_REALTIME, &ts);
	if (tv) { tv->tv_sec = ts.tv_sec; tv->tv_usec = ts.tv_nsec / 1000; }
	return r;
}

time_t time(time_t *t) {
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (t) *t = ts.tv_sec;
	return ts.tv_sec;
}
`

// startShifted starts a server whose clock is set by set.
func startShifted(t *testing.T) (s *server, set func(by time.Duration)) {
	gcc := testbed.Lookup(t, "gcc")
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	require.NoError(t, os.WriteFile(source, []byte(shim), 0o600))
	out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl").CombinedOutput()
	require.NoError(t, err, string(out))
	file := filepath.Join(dir, "offset")
	write := func(by time.Duration) {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		defer f.Close()
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0)
		require.NoError(t, err)
	}
	write(0)
	s = startServerEnv(t, []string{"LD_PRELOAD=" + library, "CLOCK_OFFSET=" + file})
	direct := connect(t, s.Addr)
	return s, func(by time.Duration) {
		write(by)
		require.Eventually(t, func() bool { // the server looks at the clock now and then
			return direct.Time(background).Val().Sub(time.Now().Add(by)).Abs() < 10*time.Second
		}, 20*time.Second, time.Millisecond)
	}
}

func TestAServerWhoseClockIsSetForwardIsNoticedWithTheNextRenewal(t *testing.T) {
	t.Parallel()
	s, set := startShifted(t)
	l, rival := open(t, connect(t, s.Addr), term(3*time.Second)).FencedLocker("it"), open(t, connect(t, s.Addr)).FencedLocker("it")
	a, b := someone(), someone()
	h := hold(t, l, a)
	set(time.Minute)
	token := hold(t, rival, b).Token()
	require.Greater(t, token, h.Token(), "two hold it for a moment: the token tells them apart")
	select {
	case <-h.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the renewal did not tell")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestAServerWhoseClockIsSetBackHoldsTheLockLongerAndNothingElse(t *testing.T) {
	t.Parallel()
	s, set := startShifted(t)
	direct := connect(t, s.Addr)
	for name, lock := range anyKind {
		set(0)
		l := lock(open(t, connect(t, s.Addr), term(long)), name)
		rival := lock(open(t, connect(t, s.Addr), term(long)), name)
		a, b := someone(), someone()
		require.NoError(t, l.LockContext(a))
		h, err := l.(locks.Leased).Hold(a)
		require.NoError(t, err)
		before := direct.PTTL(background, name).Val()
		set(-time.Hour)
		require.Greater(t, direct.PTTL(background, name).Val(), 50*time.Minute+before, "or the shim does nothing")
		ok, err := rival.TryLockContext(b)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, rival.LockContext(b), "progress")
		require.NoError(t, rival.UnlockContext(b))

		// One whose holder has died lasts until its time comes again, which is told in times that are no promise.
		require.NoError(t, l.LockContext(a))
		got := make(chan error, 1)
		go func() { got <- rival.LockContext(b) }()
		set(time.Hour)
		select {
		case err := <-got:
			require.NoError(t, err)
		case <-time.After(30 * time.Second):
			t.Fatal("no progress")
		}
		require.NoError(t, rival.UnlockContext(b))
		l.UnlockContext(a)
	}
}

func TestTheQueueDoesNotDependOnTheClocksOfItsWaiters(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			s, set := startShifted(t)
			set(by) // so that all clients are off by as much
			l := lineOn(t, s, 4)
			queue := l.direct.LRange(background, fairQueue, 0, -1).Val()
			require.Len(t, queue, 4)
			now := l.direct.Time(background).Val()
			for i, z := range l.direct.ZRangeWithScores(background, fairTimes, 0, -1).Val() {
				require.Equal(t, queue[i], z.Member)
				require.InDelta(t, 60+30*i, time.UnixMilli(int64(z.Score)).Sub(now).Seconds(), 20)
			}
			l.finish()
			require.Equal(t, []int{0, 1, 2, 3}, l.order)
		})
	}
}

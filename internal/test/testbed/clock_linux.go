package testbed

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// shim adds to the time of day what a file says, in nanoseconds. It allocates nothing, since
// the allocator of the program asks for the time too.
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

// Clock returns the environment for a server whose clock can be set, and a function that sets the
// clock: to the time of day plus by. Any user may start the server.
func Clock(tb testing.TB) (env []string, set func(by time.Duration)) {
	tb.Helper()
	gcc := Lookup(tb, "gcc")
	dir, err := os.MkdirTemp("", "clock") // not inside of one that only this user may enter
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	file := filepath.Join(dir, "offset")
	if err := os.WriteFile(source, []byte(shim), 0o644); err != nil {
		tb.Fatal(err)
	}
	out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl").CombinedOutput()
	if err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	set = func(by time.Duration) {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
		if err == nil {
			_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0)
			f.Close()
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	set(0)
	return []string{"LD_PRELOAD=" + library, "CLOCK_OFFSET=" + file}, set
}

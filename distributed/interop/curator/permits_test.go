package curator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// tries asks for n permits without waiting for them.
func (s *stage) tries(sem *lease.Semaphore, n int64) locks.Permits {
	s.Helper()
	p, _, err := sem.TryAcquireContext(background, n)
	require.NoError(s, err)
	return p
}

// acquire begins an acquisition of n permits by Go.
func (s *stage) acquire(sem *lease.Semaphore, n int64) <-chan locks.Permits {
	got := make(chan locks.Permits, 1)
	go func() {
		p, err := sem.AcquireContext(background, n)
		assert.NoError(s, err)
		got <- p
	}()
	return got
}

// gets waits for the acquisition that acquire has begun.
func (s *stage) gets(got <-chan locks.Permits) locks.Permits {
	s.Helper()
	select {
	case p := <-got:
		require.NotNil(s, p)
		return p
	case <-time.After(patience):
		s.Fatal("it was not woken")
		return nil
	}
}

func (s *stage) gives(p locks.Permits) {
	s.Helper()
	require.NoError(s, p.ReleaseContext(background))
}

func goWaitsForPermitsThatJavaReleases(s *stage) {
	sem := s.ours.Semaphore("/it", 3)
	s.java.do("true", "t1", "take", "permits", "/it", "3", "2")
	require.Nil(s, s.tries(sem, 2))
	one := s.tries(sem, 1)
	require.NotNil(s, one)
	info, err := sem.Inspect(background)
	require.NoError(s, err)
	require.Len(s, info.Holders, 3, "Java's leases belong to nothing")
	got := s.acquire(sem, 2)
	s.queued("/it/leases", 5)
	require.Empty(s, got)
	s.java.do("ok", "t1", "give", "permits", "/it", "3")
	two := s.gets(got)
	s.java.do("false", "t1", "take", "permits", "/it", "3", "1", "100")
	s.gives(one)
	s.gives(two)
	s.queued("/it/leases", 0)
}

func javaWaitsForPermitsThatGoReleases(s *stage) {
	sem := s.ours.Semaphore("/it", 3)
	two := s.tries(sem, 2)
	require.NotNil(s, two)
	s.java.do("2", "t1", "count", "permits", "/it", "3")
	s.java.do("false", "t1", "take", "permits", "/it", "3", "2", "100")
	s.java.do("true", "t1", "take", "permits", "/it", "3", "1")
	answer := s.java.start("t2", "take", "permits", "/it", "3", "2")
	s.queued("/it/leases", 4) // Java takes the second one later
	info, err := sem.Inspect(background)
	require.NoError(s, err)
	require.Len(s, info.Holders, 2, "one of Java's waits")
	require.Equal(s, int64(2), info.Holders[0].Permits)
	require.Equal(s, int64(1), info.Holders[1].Permits)
	require.Nil(s, s.tries(sem, 1))
	s.gives(two)
	require.Equal(s, "true", s.java.wait(answer))
	require.Nil(s, s.tries(sem, 1))
	s.java.do("ok", "t2", "give", "permits", "/it", "3")
	s.gives(s.tries(sem, 2))
	s.java.do("ok", "t1", "give", "permits", "/it", "3")
}

func permitsOfAKilledJavaProcessReturn(s *stage) {
	s.Parallel()
	s.withAMortal()
	sem := s.ours.Semaphore("/it", 3)
	s.java.do("true", "t1", "take", "permits", "/it", "3", "2")
	got := s.acquire(sem, 3)
	s.queued("/it/leases", 5)
	s.java.Kill()
	s.gives(s.gets(got))
}

// room counts the permits that are in use on both sides.
type room struct {
	testing.TB
	size  int64
	taken atomic.Int64
}

func (r *room) enter(n int64) {
	if taken := r.taken.Add(n); taken > r.size {
		r.Errorf("%d permits of %d are taken", taken, r.size)
	}
}

func (r *room) leave(n int64) { r.taken.Add(-n) }

func (r *room) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	n, err := strconv.ParseInt(req.URL.Query().Get("n"), 10, 64)
	assert.NoError(r, err)
	if req.URL.Path == "/enter" {
		r.enter(n)
	} else {
		r.leave(n)
	}
}

func bothSidesShareASemaphoreUnderLoad(s *stage) {
	const lasts = 3500 * time.Millisecond
	r := &room{TB: s, size: 3}
	server := httptest.NewServer(r)
	defer server.Close()
	var answers []<-chan string
	for i := range 3 {
		answers = append(answers, s.java.start("t"+strconv.Itoa(i), "stress", "permits", "/load", "3",
			strconv.FormatInt(lasts.Milliseconds(), 10), server.URL))
	}
	var ours atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(lasts)
	for i := range int64(3) {
		sem := s.open().Semaphore("/load", 3)
		wg.Go(func() {
			for n := i; time.Now().Before(end); n++ {
				ctx, cancel := context.WithTimeout(background, patience)
				p, err := sem.AcquireContext(ctx, 1+n%2)
				cancel()
				if !assert.NoError(s, err) {
					return
				}
				r.enter(p.Count())
				time.Sleep(time.Millisecond)
				r.leave(p.Count())
				ours.Add(1)
				if !assert.NoError(s, p.ReleaseContext(background)) {
					return
				}
			}
		})
	}
	wg.Wait()
	theirs := 0
	for _, c := range answers {
		n, err := strconv.Atoi(s.java.wait(c))
		require.NoError(s, err)
		theirs += n
	}
	s.Logf("%d acquisitions by Go, %d by Java", ours.Load(), theirs)
	require.NotZero(s, ours.Load())
	require.NotZero(s, theirs)
}

func aLeaseOfOursLooksLikeJavas(s *stage) {
	p := s.tries(s.ours.Semaphore("/ours", 3), 2)
	s.java.do("true", "t1", "take", "permits", "/theirs", "3", "2")
	ours, theirs := s.forms("/ours", ""), s.forms("/theirs", "")
	for i := range ours {
		if ours[i].ephemeral {
			ours[i].data = "an address" // and the name of the acquisition, for inspectors
		}
	}
	require.ElementsMatch(s, theirs, ours)
	s.gives(p)
	s.java.do("ok", "t1", "give", "permits", "/theirs", "3")
}

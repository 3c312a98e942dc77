package s3lock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAProbeOfASafeStorePasses(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		client, passed := connect(t, s), 0
		for range 20 {
			err := s3lock.Probe(t.Context(), client, bucketName)
			require.NotErrorIs(t, err, s3lock.ErrUnsafe)
			if err == nil { // on a busy machine an answer may come too late
				passed++
			}
		}
		require.Positive(t, passed)
	})
}

func TestAProbeLeavesNoObject(t *testing.T) {
	f := newFake()
	require.NoError(t, s3lock.Probe(t.Context(), f.client(), bucketName))
	reads, writes, deletions := f.Counts()
	require.Equal(t, []int{2, 16, 2}, []int{reads, writes, deletions})
	require.Zero(t, f.has())
}

// flaws are the flaws of unsafe stores, by the finding of the probe.
var flaws = map[string]func(f *fake){
	"8 of 8 creations of one object succeeded at the same time": func(f *fake) {
		f.Before = drop("If-None-Match")
	},
	"8 of 8 replacements of one version succeeded at the same time": func(f *fake) {
		f.Before = dropOfPut("If-Match")
	},
	"2 of 8 creations of one object succeeded at the same time": func(f *fake) {
		f.Before = meeting("If-None-Match")
	},
	"2 of 8 replacements of one version succeeded at the same time": func(f *fake) {
		f.Before = meeting("If-Match")
	},
	"none of 8 creations of one object succeeded, and neither did one alone": func(f *fake) {
		f.Before = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				return refusal(http.StatusPreconditionFailed, "PreconditionFailed"), nil
			}
			return nil, nil
		}
	},
	"the answer to a write has no new ETag": func(f *fake) {
		f.After = func(_ *http.Request, answer *http.Response) (*http.Response, error) {
			answer.Header.Del("ETag")
			return answer, nil
		}
	},
	"a read returned something else than the last write": func(f *fake) {
		f.After = func(r *http.Request, answer *http.Response) (*http.Response, error) {
			if r.Method == http.MethodGet && answer.StatusCode == http.StatusOK {
				answer.Body = io.NopCloser(strings.NewReader("old"))
				answer.ContentLength = 3
			}
			return answer, nil
		}
	},
	"a read returned an object after its deletion": func(f *fake) {
		f.Before = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete && r.Header.Get("If-Match") == "" {
				return answered(http.StatusNoContent, "", ""), nil
			}
			if r.Method == http.MethodDelete {
				return refusal(http.StatusNotImplemented, "NotImplemented"), nil
			}
			return nil, nil
		}
	},
	"it has no conditional writes": func(f *fake) {
		f.Before = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				return refusal(http.StatusNotImplemented, "NotImplemented"), nil
			}
			return nil, nil
		}
	},
	"a deletion was refused although the object had not changed": func(f *fake) {
		f.Before = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				return refusal(http.StatusPreconditionFailed, "PreconditionFailed"), nil
			}
			return nil, nil
		}
	},
}

// drop makes a server that ignores a header.
func drop(header string) func(r *http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		r.Header.Del(header)
		return nil, nil
	}
}

func dropOfPut(header string) func(r *http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut {
			r.Header.Del(header)
		}
		return nil, nil
	}
}

// meeting makes a server that compares and writes in two steps: once, two requests with the header
// have both compared before one of them writes.
func meeting(header string) func(r *http.Request) (*http.Response, error) {
	var n atomic.Int64
	return func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && r.Header.Get(header) != "" && n.Add(1) == 2 {
			r.Header.Del(header)
		}
		return nil, nil
	}
}

func TestAnUnsafeStoreIsRefusedInWords(t *testing.T) {
	for words, flaw := range flaws {
		t.Run(words, func(t *testing.T) {
			f := newFake()
			flaw(f)
			err := s3lock.Probe(t.Context(), f.client(), bucketName)
			require.ErrorIs(t, err, s3lock.ErrUnsafe)
			require.ErrorContains(t, err, "s3lock: probe: ")
			require.ErrorContains(t, err, "this store is not safe for locks")
			require.ErrorContains(t, err, words)
		})
	}
}

func TestASilentStoreIsNoEndOfTheCallersContext(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.Before = func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		err := s3lock.Probe(t.Context(), f.client(), bucketName)
		require.ErrorContains(t, err, "no answer in time")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, err.Error(), "context deadline exceeded")
	})
}

func TestAnUnsafeStoreGetsNoLock(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.Before = drop("If-None-Match")
		l := open(t, f.client()).Mutex("it")
		err := l.LockContext(adaptertest.Owner())
		require.ErrorIs(t, err, s3lock.ErrUnsafe)
		require.ErrorContains(t, err, `s3lock: lock "it": this store is not safe for locks: 8 of 8 creations`)
		synctest.Wait()
		require.Zero(t, f.has(), "objects")

		f.Counts()
		held, err := l.TryLockContext(adaptertest.Owner())
		require.ErrorIs(t, err, s3lock.ErrUnsafe)
		require.False(t, held)
		_, writes, _ := f.Counts()
		require.Zero(t, writes, "after the verdict")
	})
}

func TestAKnownStoreIsNotProbed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		adaptertest.Pair(t, open(t, f.client(), s3lock.WithoutProbe()).Mutex("it"))
		require.Equal(t, 1, f.has())
		reads, writes, deletions := f.Counts()
		require.Equal(t, []int{1, 2, 0}, []int{reads, writes, deletions})
	})
}

func TestConcurrentFirstWritesProbeOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		c := open(t, f.client())
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			wg.Go(func() { adaptertest.Pair(t, c.Mutex(name)) })
		}
		wg.Wait()
		reads, writes, deletions := f.Counts()
		require.Equal(t, []int{4 + 2, 8 + 16, 2}, []int{reads, writes, deletions})
	})
}

func TestAReaderDoesNotProbe(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		_, err := open(t, f.client()).Mutex("it").Inspect(t.Context())
		require.NoError(t, err)
		_, writes, _ := f.Counts()
		require.Zero(t, writes)
	})
}

func TestAnInterruptedProbeIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.Before = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				return nil, adaptertest.ErrNetwork
			}
			return nil, nil
		}
		l := open(t, f.client(), s3lock.WithLeaseOptions(lease.WithRetry(lease.RetryNever))).Mutex("it")
		held, err := l.TryLockContext(adaptertest.Owner())
		require.ErrorIs(t, err, adaptertest.ErrNetwork)
		require.NotErrorIs(t, err, s3lock.ErrUnsafe)
		require.False(t, held)
		f.Set(func() { f.Before = nil })
		adaptertest.Pair(t, l)
	})
}

func TestAStoreInTroubleIsProbedAgain(t *testing.T) {
	for what, trouble := range map[string]func() (*http.Response, error){
		"an error":  func() (*http.Response, error) { return refusal(http.StatusInternalServerError, "InternalError"), nil },
		"no answer": func() (*http.Response, error) { return nil, adaptertest.ErrNetwork },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				var n atomic.Int64
				f.Before = func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPut && n.Add(1) <= 8 { // of the first race
						return trouble()
					}
					return nil, nil
				}
				adaptertest.Pair(t, open(t, f.client()).Mutex("it"))
			})
		})
	}
}

func TestAProbeThatWaitsEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.Before = func(r *http.Request) (*http.Response, error) { // the first probe hangs
			if r.Method == http.MethodPut {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return nil, nil
		}
		d := s3lock.Documents(f.client(), bucketName)
		swap := func(ctx context.Context, err *error) { _, *err = d.Swap(ctx, "it", []byte("data"), "") }
		first, endFirst := context.WithCancel(t.Context())
		second, endSecond := context.WithCancel(t.Context())
		var firstErr, secondErr error
		go swap(first, &firstErr)
		synctest.Wait()
		go swap(second, &secondErr)
		synctest.Wait()
		endSecond()
		synctest.Wait()
		require.ErrorIs(t, secondErr, context.Canceled)
		require.ErrorIs(t, secondErr, lease.ErrRefused, "no write was sent")
		require.NoError(t, firstErr, "it has not returned")
		endFirst()
		synctest.Wait()
		require.ErrorIs(t, firstErr, context.Canceled)
	})
}

func TestAProbeWithoutRightsSaysWhich(t *testing.T) {
	for method, right := range map[string]string{
		http.MethodPut:    "the right s3:PutObject is missing",
		http.MethodGet:    "the right s3:GetObject or s3:ListBucket is missing",
		http.MethodDelete: "the right s3:DeleteObject is missing",
	} {
		t.Run(method, func(t *testing.T) {
			f := newFake()
			f.Before = func(r *http.Request) (*http.Response, error) {
				if r.Method == method {
					return refusal(http.StatusForbidden, "AccessDenied"), nil
				}
				return nil, nil
			}
			err := s3lock.Probe(t.Context(), f.client(), bucketName)
			require.ErrorContains(t, err, `bucket "locks-bucket": `+right)
			require.False(t, errors.Is(err, s3lock.ErrUnsafe))
		})
	}
}

func TestARacyServerIsRefused(t *testing.T) {
	client := connect(t, testbed.StartMotoS3(t, bucketName, time.Microsecond))
	for range 1000 { // one of ten finds it
		if err := s3lock.Probe(t.Context(), client, bucketName); errors.Is(err, s3lock.ErrUnsafe) {
			require.ErrorContains(t, err, "succeeded at the same time")
			return
		}
	}
	t.Fatal("no probe has refused it")
}

func TestAStoreThatRefusesARaceIsSafe(t *testing.T) {
	f := newFake()
	var n atomic.Int64
	f.Before = func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && n.Add(1)%9 != 0 { // all eight writes, and not the write after them
			return refusal(http.StatusConflict, "ConditionalRequestConflict"), nil
		}
		return nil, nil
	}
	require.NoError(t, s3lock.Probe(t.Context(), f.client(), bucketName))
}

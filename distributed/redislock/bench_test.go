package redislock_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

func BenchmarkPing(b *testing.B) {
	c := connect(b, startServer(b).Addr)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		c.Ping(ctx)
	}
}

func benchPair(b *testing.B, ctx context.Context, lock func(c *redislock.Client) locks.TryLocker) {
	l := lock(open(b, redis.UniversalClient(connect(b, startServer(b).Addr))))
	b.ReportAllocs()
	for b.Loop() {
		if err := l.LockContext(ctx); err != nil {
			b.Fatal(err)
		}
		if err := l.UnlockContext(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUncontended(b *testing.B) {
	for name, kind := range kinds {
		b.Run(name, func(b *testing.B) {
			benchPair(b, context.Background(), func(c *redislock.Client) locks.TryLocker { return kind(c, "it") })
		})
	}
	b.Run("plain with a context that can be cancelled", func(b *testing.B) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		benchPair(b, ctx, func(c *redislock.Client) locks.TryLocker { return c.Locker("it") })
	})
}

func BenchmarkReentry(b *testing.B) {
	l := open(b, connect(b, startServer(b).Addr)).Locker("it")
	ctx := context.Background()
	if err := l.LockContext(ctx); err != nil {
		b.Fatal(err)
	}
	defer l.UnlockContext(ctx)
	b.ReportAllocs()
	for b.Loop() {
		l.LockContext(ctx)
		l.UnlockContext(ctx)
	}
}

// BenchmarkCohort has eight goroutines of one process want one lock.
func BenchmarkCohort(b *testing.B) {
	l := open(b, connect(b, startServer(b).Addr)).Locker("it")
	ctx := context.Background()
	b.SetParallelism(4) // of two processors
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if l.LockContext(ctx) == nil {
				l.UnlockContext(ctx)
			}
		}
	})
}

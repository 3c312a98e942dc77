package scenarios

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/singleton"
)

var _ = register(lab.Scenario{
	Lesson:   140,
	Name:     "singleton",
	Topic:    "Without a lock",
	Title:    "One value of a kind: wrong, and right",
	Question: "How is something made once, on demand, without a lock for ever after?",
	Claim: `Check, and make it if it is not there: two goroutines that check at the same time make two. With a lock around everything it is right, and every reader pays for it. Double-checked locking checks, locks, and checks again.

Its classic form has a bug of its own: the first check reads a plain pointer while somebody may be writing it. To allocate, to publish and to initialise are separate writes, and others may see them in another order; Java needs volatile there. In Go it is a data race, and ` + "`go test -race`" + ` says so. The first check has to be an atomic load.`,
	Look:  "Without a lock both goroutines find nothing, and both make a value. With Lazy the second waits for the first, and gets the same one. Later calls do not wait at all.",
	Found: `Without a lock {{.wrong}} values were made. {{n .callers}} callers of Lazy got the same one, made {{times .right}}. After a constructor that failed the next caller tried again, and a constructor that asked for its own value was told so.`,
	Take:  "`singleton.Lazy`, or `sync.OnceValue` if the constructor cannot fail and nobody needs to give up waiting.",
	Java: `private volatile Config instance;      // volatile is what makes it right
Config get() {
    Config c = instance;
    if (c == null) synchronized (this) {
        c = instance;
        if (c == null) instance = c = load();
    }
    return c;
}`,
	Run: single,
})

//lab:show

type config struct{ number int64 }

// checkThenAct is wrong: between the check and the store, others check as well.
func checkThenAct(instance *atomic.Pointer[config], load func() *config) *config {
	if c := instance.Load(); c != nil {
		return c
	}
	c := load()
	instance.Store(c)
	return c
}

// lazily is right: load runs once, and later calls are one atomic load.
func lazily(load func() *config) *singleton.Lazy[*config] {
	return singleton.New(func() (*config, error) { return load(), nil })
}

//lab:end

func single(ctx context.Context, l *lab.Lab) error {
	var made atomic.Int64
	t := l.Timeline("Check, then act", "Both goroutines find nothing, and both make a value.")
	var instance atomic.Pointer[config]
	var both sync.WaitGroup
	both.Add(2)
	seen := make([]*config, 2)
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(name, func(_ context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * time.Millisecond)
			seen[i] = checkThenAct(&instance, func() *config {
				me.Mark("finds nothing")
				both.Done()
				both.Wait()
				var c *config
				me.Is(lab.Exclusive, "makes a value", func() {
					me.Work(3 * time.Millisecond)
					c = &config{made.Add(1)}
				})
				me.Mark("has value %d", c.number)
				return c
			})
			me.Work(time.Millisecond)
			return nil
		})
	}
	t.Wait()
	l.Check(seen[0] != seen[1], "without a lock, two goroutines can make two values")
	l.Observe("wrong", made.Swap(0))

	t = l.Timeline("singleton.Lazy", "The first makes the value, the others get the same one.")
	var maker atomic.Pointer[lab.Lane]
	lazy := lazily(func() *config {
		me := maker.Load()
		c := new(config)
		me.Is(lab.Exclusive, "makes the value", func() {
			me.Work(4 * time.Millisecond)
			c.number = made.Add(1)
		})
		return c
	})
	names := []string{"Ann", "Bob", "Cid", "Dot"}
	got := make([]*config, len(names))
	for i, name := range names {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(1+2*i) * time.Millisecond)
			me.Mark("asks")
			var err error
			get := func() { got[i], err = lazy.GetContext(ctx) }
			if i == 0 {
				maker.Store(me)
				get()
			} else {
				l.Until("the first makes it", func() bool { return maker.Load() != nil })
				me.Is(lab.Waiting, "waits for the value", get)
			}
			me.Mark("has the value")
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	l.Equal([]*config{got[0], got[0], got[0], got[0]}, got, "everybody gets the same value")
	l.Equal(int64(1), made.Load(), "the value is made once")
	l.Observe("callers", len(names))
	l.Observe("right", made.Load())

	attempts := 0
	moody := singleton.New(func() (int, error) {
		if attempts++; attempts == 1 {
			return 0, errNoLuck
		}
		return attempts, nil
	})
	_, err := moody.GetContext(ctx)
	l.Is(errNoLuck, err, "an error of the constructor goes to the caller it ran for")
	value, err := moody.GetContext(ctx)
	l.Must(err)
	l.Equal(2, value, "after a failure the next caller tries again")
	var self *singleton.Lazy[int]
	self = singleton.New(func() (int, error) { return self.Get() })
	_, err = self.Get()
	l.Check(errors.Is(err, singleton.ErrRecursive), "a constructor that asks for its own value is told, and does not hang")
	return nil
}

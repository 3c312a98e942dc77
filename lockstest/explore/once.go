package explore

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks/internal/stacks"
)

// A sync.Once has a sync.Mutex. A goroutine that waits for it is not durably blocked, so that
// synctest.Wait does not return. Therefore the root looks at the stacks of the run instead, while a
// goroutine is inside of the function of a sync.Once. A goroutine that waits for another
// sync.Mutex, whose holder is stopped at a decision, stalls the run.

const onceFunction = "sync.(*Once).doSlow"

// onceFrom and onceTo are where the function of package sync begins and ends that calls the
// function of a sync.Once.
var onceFrom, onceTo = func() (from, to uintptr) {
	new(sync.Once).Do(func() {
		pcs := make([]uintptr, 8)
		for _, pc := range pcs[:runtime.Callers(1, pcs)] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Name() == onceFunction {
				from = f.Entry()
			}
		}
	})
	for to = from; entryOf(to) == from && from > 0; to++ {
	}
	return from, to
}()

// entryOf returns where the function begins that has the instruction at pc, or 0.
func entryOf(pc uintptr) uintptr {
	if f := runtime.FuncForPC(pc); f != nil {
		return f.Entry()
	}
	return 0
}

// inOnce reports whether the function of a sync.Once has called a function with this stack.
func inOnce(stack []uintptr) bool {
	return slices.ContainsFunc(stack, func(pc uintptr) bool { return onceFrom < pc && pc <= onceTo })
}

// callStack is room for the callers of a function.
type callStack [64]uintptr

// settle returns when no goroutine of the run can go on without the root. It notes whether one of
// them waits for a sync.Once.
func (x *X) settle() {
	x.atOnce = false
	if !slices.ContainsFunc(x.list, func(g *goroutine) bool { return g.within && g.state.Load() != done }) {
		synctest.Wait()
		return
	}
	for {
		all, _ := stacks.All()
		if x.atOnce = false; x.settled(all) {
			break
		}
		runtime.Gosched()
	}
	for i := range x.count.Load() {
		if g := x.goroutines[i].Load(); g != nil {
			g.told.Load() // orders what g has written for the root, as synctest.Wait does
		}
	}
}

// settled reports whether all goroutines of the run but the root are blocked.
func (x *X) settled(all map[int64]stacks.Goroutine) bool {
	for _, g := range all {
		if !x.has(g) {
			continue
		}
		switch {
		case ofSync(g) && strings.Contains(g.Frames, onceFunction):
			x.atOnce = true
		case ofSync(g), strings.Contains(g.State, "durable"), strings.HasPrefix(g.State, "synctest."):
		case strings.Contains(g.Frames, "explore.(*X).root("):
		default:
			return false
		}
	}
	return true
}

// dead reports whether the goroutines inside of a sync.Once for which others wait are blocked for
// ever, if none can go on.
func (x *X) dead() bool {
	return !slices.ContainsFunc(x.list, func(g *goroutine) bool {
		s := g.seen()
		return g.within && g.state.Load() == running && (!s.inLock() || s.timed)
	})
}

// stall is how long a goroutine of a run may wait for a lock of package sync while no other
// goroutine of the run can go on.
var stall = 3 * time.Second

// looksOfStall is how often await looks in that time.
const looksOfStall = 3

// has reports whether a goroutine is in the bubble of the run.
func (x *X) has(g stacks.Goroutine) bool {
	suffix := x.suffix.Load()
	return suffix != nil && strings.HasSuffix(g.State, *suffix)
}

// ofSync reports whether a goroutine waits for a lock of package sync.
func ofSync(g stacks.Goroutine) bool {
	return strings.HasPrefix(g.State, "sync.Mutex") || strings.HasPrefix(g.State, "sync.RWMutex")
}

// stalled reports whether the run cannot go on, since one of its goroutines waits for a lock of
// package sync. The text has the numbers of these goroutines.
func (x *X) stalled(all map[int64]stacks.Goroutine) (numbers string, ok bool) {
	var ids []int64
	for id, g := range all {
		switch {
		case !x.has(g):
		case ofSync(g):
			ids = append(ids, id)
		case !strings.Contains(g.State, "durable") && !strings.HasPrefix(g.State, "synctest."):
			return "", false // it runs, or waits for something outside
		}
	}
	slices.Sort(ids)
	return fmt.Sprint(ids), len(ids) > 0
}

// stalls names the goroutines that wait for a lock of package sync.
func (x *X) stalls(all map[int64]stacks.Goroutine) string {
	var lines []string
	what, deadlock := "sync.Mutex", true
	for i := range x.count.Load() {
		g := x.goroutines[i].Load()
		if g == nil || g.state.Load() == done {
			continue
		}
		s, lives := all[g.id.Load()]
		if !lives {
			continue
		}
		where, _ := blockedAt(all, g.id.Load())
		name := g.name
		if name == "" {
			name = "a goroutine of the program"
		}
		once := strings.Contains(s.Frames, onceFunction)
		switch {
		case ofSync(s) && once:
			what = "sync.Once"
			lines = append(lines, name+" waits for a sync.Once"+where)
		case ofSync(s):
			lines = append(lines, name+" waits for a lock of package sync"+where)
		case g.state.Load() == ready:
			deadlock = false
			lines = append(lines, name+" is stopped at a decision"+where)
		case g.state.Load() == joining:
			lines = append(lines, name+" waits until all goroutines have ended"+where)
		case once:
			lines = append(lines, name+" is inside of a sync.Once, and waits"+where)
		default:
			lines = append(lines, name+" waits"+where)
		}
	}
	remedy := "a fair.BargingMutex in its place"
	if what == "sync.Once" {
		remedy = "a singleton.Lazy in its place"
	}
	kind := "explore: a run does not go on, since the explorer cannot see a " + what + ": use " + remedy
	if deadlock {
		kind = "explore: deadlock. The explorer cannot see a " + what + ", so there is no schedule: use " + remedy
	}
	return kind + "\n  " + strings.Join(lines, "\n  ")
}

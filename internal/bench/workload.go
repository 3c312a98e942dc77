package bench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Units of the cost of a [Subject].
const (
	Nanoseconds   = "ns"
	ProcessorTime = "cpu-ns" // of all processors together
	Bytes         = "B"
)

// Workload is one thing to do with several subjects.
type Workload struct {
	// Name says in a few words what is done. About says it in a sentence.
	Name, About string
	// Unit is the unit of the cost of an operation.
	Unit string
	// Subjects are the locks and other means to do it with.
	Subjects []Subject
	// Targets are the ratios to reach.
	Targets []Target
	// Series names the workloads that do the same at different sizes, and Size is the size of
	// this workload. See [Growth].
	Series string
	Size   int
}

// Subject is a lock, or another means, that a [Workload] measures.
type Subject struct {
	Name string
	// New prepares a measurement. run does n operations, or a few more, and returns the cost of
	// one.
	New func() (run func(n int) (cost float64, err error))
}

// Ours reports whether the subject is of this module.
func (s Subject) Ours() bool {
	if strings.HasSuffix(s.Name, Predicted) {
		return false
	}
	for _, p := range []string{
		"fair.", "reentrant.", "rwlock.", "spin.", "keyed.", "cas.", "locks.", "singleton.",
		"locks/", "synchronizer.",
	} {
		if strings.HasPrefix(s.Name, p) {
			return true
		}
	}
	return false
}

// Target is the highest cost that one subject may have, as a multiple of the cost of another
// subject.
type Target struct {
	Subject, Peer string
	Ratio         float64
}

// Has reports whether w has a subject of that name.
func (w *Workload) Has(name string) bool {
	return slices.ContainsFunc(w.Subjects, func(s Subject) bool { return s.Name == name })
}

// Loop makes a subject of a loop, by the time that it takes.
func Loop(name string, loop func() func(n int)) Subject {
	return Subject{Name: name, New: func() func(int) (float64, error) {
		f := loop()
		return func(n int) (float64, error) {
			start := time.Now()
			f(n)
			return float64(time.Since(start)) / float64(n), nil
		}
	}}
}

// Parallel makes a subject of a loop that so many goroutines share. The cost is the time of one
// operation, of all goroutines taken together.
func Parallel(name string, goroutines int, loop func() func(n int)) Subject {
	return Loop(name, func() func(int) {
		f := loop()
		return func(n int) {
			share(goroutines, n, func(_, n int) { f(n) })
		}
	})
}

// share runs n operations in goroutines together, and returns when all have ended.
func share(goroutines, n int, f func(goroutine, n int)) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { f(g, (n+g)/goroutines) })
	}
	wg.Wait()
}

// Cost makes a subject of a function that measures itself.
func Cost(name string, run func(n int) (float64, error)) Subject {
	return Subject{Name: name, New: func() func(int) (float64, error) { return run }}
}

var errUnknownTime = fmt.Errorf("bench: processor time is not known on %s", runtime.GOOS)

// InProcessorTime returns the processor time of one of n operations that f does.
func InProcessorTime(n int, f func() error) (float64, error) {
	before, ok := processorTime()
	if !ok {
		return 0, errUnknownTime
	}
	err := f()
	after, _ := processorTime()
	return float64(after-before) / float64(n), err
}

// BytesOf makes a subject of the heap that a used lock takes, with all that it refers to.
func BytesOf(name string, used func() any) Subject {
	return Cost(name, func(n int) (float64, error) {
		n = max(n, 10_000) // the heap has other users
		keep := make([]any, n)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range keep {
			keep[i] = used()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(keep)
		return max(0, float64(after.HeapAlloc)-float64(before.HeapAlloc)) / float64(n), nil
	})
}

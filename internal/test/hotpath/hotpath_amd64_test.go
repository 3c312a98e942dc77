// Package hotpath guards the fast paths of the locks without a clock: it counts what they compile
// to. A fast path that is no longer inlined, or that has one more atomic change or call, fails here
// on the busiest machine.
package hotpath

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// code describes the code of a compiled function.
type code struct {
	instructions int
	atomics      int      // that lock the cache line, on all branches together
	calls        []string // without calls that panic or grow the stack
}

const (
	indirect   = "a method by a table" // of an interface or of a type parameter
	rules      = "internal/ruled.(*Sync[go.shape.struct {}])"
	tryAcquire = rules + ".TryAcquire"
	barged     = "internal/syncq.(*Sync).Barged" // after the acquisition, if another goroutine waits
)

// limits are the sizes of the compiled functions with Go 1.26 or 1.27, whichever is more.
var limits = map[string]code{
	"useFair":                   {32, 2, []string{"fair.(*Mutex).lock", "fair.(*Mutex).unlock"}},
	"useRead":                   {32, 2, []string{"fair.(*RWMutex).rlock", "fair.(*RWMutex).runlock"}},
	"useWrite":                  {32, 2, []string{"fair.(*RWMutex).lock", "fair.(*RWMutex).unlock"}},
	"useBarging":                {32, 2, []string{"fair.(*BargingMutex).lock", "fair.(*BargingMutex).unlock"}},
	"useSpin":                   {32, 2, []string{"spin.(*Mutex).lock", "spin.(*Mutex).unlock"}},
	"useMCS":                    {32, 2, []string{"spin.(*MCS).wait", "spin.(*MCS).unlock"}},
	"useSync":                   {23, 0, []string{tryAcquire, rules + ".Release"}},
	"useOptimistic":             {24, 0, nil},
	"useSnapshot":               {8, 0, nil},
	"useLazy":                   {21, 0, []string{"singleton.(*Lazy[go.shape.int]).getSlow"}},
	"usePacked":                 {15, 1, nil},
	"usePark":                   {33, 0, []string{"sync.(*Cond).Wait", "runtime.chanrecv1", "runtime.gcWriteBarrier2"}},
	"reentrant.(*Mutex).Lock":   {64, 2, []string{"getg", barged, "reentrant.(*Mutex).lock"}},
	"reentrant.(*Mutex).Unlock": {59, 2, []string{"getg", "reentrant.(*Mutex).unlock"}},
	"rwlock.(*RWMutex).Lock":    {70, 2, []string{"getg", barged, "rwlock.(*RWMutex).lock"}},
	"rwlock.(*RWMutex).Unlock":  {61, 2, []string{"getg", "rwlock.(*RWMutex).unlock"}},
	"rwlock.(*RWMutex).RLock": {128, 2, []string{"getg", "internal/syncq.(*ReadWrite).ReadCounted",
		"internal/syncq.(*ReadWrite).ReadersLeft", "rwlock.(*RWMutex).rlock"}},
	"rwlock.(*RWMutex).RUnlock": {122, 3, []string{"getg", "internal/syncq.(*ReadWrite).ReadersLeft",
		"internal/syncq.(*Sync).UnlockShared", "rwlock.(*RWMutex).runlock"}},
	"rwlock.(*StampedLock).ReadLock":    {44, 1, []string{"rwlock.(*StampedLock).readBeside"}},
	"rwlock.(*StampedLock).UnlockRead":  {24, 0, []string{"rwlock.(*StampedLock).releaseReadHold"}},
	"rwlock.(*StampedLock).WriteLock":   {28, 1, []string{"rwlock.(*StampedLock).write"}},
	"rwlock.(*StampedLock).UnlockWrite": {27, 1, []string{"rwlock.(*StampedLock).unlockWrite"}},
	"spin.(*Ticket).Lock":               {20, 1, []string{"spin.(*Ticket).wait"}},
	"spin.(*Ticket).Unlock":             {43, 1, []string{"spin.(*Ticket).release"}},
	// With the wait, so that a goroutine that wakes returns through no other function.
	"semaphore.(*Weighted).Acquire": {202, 1, []string{indirect, "runtime.selectnbrecv",
		"github.com/jucgo/locks.CurrentOwner", rules + ".Wait", rules + ".Begin", rules + ".Leave", "runtime.selectgo",
		"semaphore.(*Weighted).Release", "semaphore.(*Weighted).failure"}},
	"semaphore.(*Weighted).TryAcquire": {40, 1, nil},
	"semaphore.(*Weighted).Release":    {45, 1, []string{rules + ".onChange", "semaphore.(*Weighted).mustRelease"}},
	tryAcquire:                         {53, 1, []string{indirect}},
}

// room is for releases of Go that compile to a few instructions more.
const room = 5

func TestFastPathsCompileWithinTheirLimits(t *testing.T) {
	compiled := compile(t)
	for _, f := range all {
		require.Contains(t, limits, short(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()))
	}
	for name, limit := range limits {
		is := compiled[name]
		require.NotZero(t, is.instructions, "%s is not in the listing", name)
		require.LessOrEqual(t, is.instructions, limit.instructions+room, "instructions of %s", name)
		require.LessOrEqual(t, is.atomics, limit.atomics, "atomic changes in %s", name)
		require.Subset(t, limit.calls, is.calls, "calls in %s", name)
	}
}

// short returns the name of a function without what all have in common.
func short(name string) string {
	name = strings.TrimPrefix(strings.TrimSuffix(name, "(SB)"), "github.com/jucgo/locks/")
	if name == "github.com/petermattis/goid.getg.abi0" {
		return "getg"
	}
	return strings.TrimPrefix(name, "internal/test/hotpath.")
}

// symbol returns the function that fields begin with. Names of generic functions have spaces. A
// call through a register has no name.
func symbol(fields []string) string {
	end := slices.IndexFunc(fields, func(f string) bool { return strings.HasSuffix(f, "(SB)") })
	if end < 0 {
		return indirect
	}
	return strings.Join(fields[:end+1], " ")
}

// compile builds this test without the race detector, and returns what its functions compile to.
func compile(t *testing.T) map[string]code {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hotpath.test")
	run(t, "go", "test", "-c", "-vet=off", "-o", binary, ".")
	const functions = `^github.com/jucgo/locks/(internal/test/hotpath\.use|` +
		`internal/ruled\.|reentrant\.|rwlock\.|semaphore\.|spin\.)`
	listing := run(t, "go", "tool", "objdump", "-s", functions, binary)

	found := map[string]code{}
	name := ""
	for lines := bufio.NewScanner(bytes.NewReader(listing)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 1 && fields[0] == "TEXT" {
			name = short(symbol(fields[1:]))
			continue
		}
		if len(fields) < 4 { // file:line, address, bytes, instruction
			continue
		}
		c := found[name]
		switch op := fields[3]; {
		case strings.HasPrefix(op, "NOP"):
			continue
		case op == "LOCK", strings.HasPrefix(op, "XCHG") && strings.Contains(lines.Text(), "("):
			c.atomics++
		case op == "CALL":
			callee := short(symbol(fields[4:]))
			if !strings.HasPrefix(callee, "runtime.morestack") && !strings.HasPrefix(callee, "runtime.panic") &&
				callee != "runtime.gopanic" && !slices.Contains(c.calls, callee) {
				c.calls = append(c.calls, callee)
			}
		}
		c.instructions++
		found[name] = c
	}
	return found
}

// run returns what a command prints.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), &stderr)
	return out
}

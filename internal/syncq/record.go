package syncq

import (
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/jucgo/locks/internal/goid"
)

// records says where locks were taken, while that is recorded. It keeps no lock alive. What it
// says of a holder is from its last acquisition: whoever takes a lock while recording is on
// says so, and switching it off forgets everything.
var records struct {
	sync.Mutex
	m     map[weak.Pointer[Sync]][]record
	limit int // the length at which those of dead locks are thrown out
}

type record struct {
	owner int64
	stack []uintptr
}

// maxFrames bounds a recorded stack.
const maxFrames = 16

// Recording reports whether holders shall say where they took their locks, with [Sync.Record]. It
// is the same as [goid.Diverted].
func Recording() bool { return goid.Diverted() }

// SetRecording switches the recording of where locks are taken, and reports whether it was on.
//
// Fast paths have no place to record, and no time to ask whether they should. What they do
// ask is [goid.Fast], which therefore gives no answer while recording is on.
func SetRecording(on bool) (was bool) {
	records.Lock()
	defer records.Unlock()
	was = goid.Divert(on)
	if on != was {
		records.m = nil
		if on {
			records.m = make(map[weak.Pointer[Sync]][]record)
		}
		records.limit = minLimit
	}
	return was
}

// Record notes that owner has just taken the lock, and where, if recording is on.
func (s *Sync) Record(owner int64) {
	stack := make([]uintptr, maxFrames)
	stack = stack[:runtime.Callers(2, stack)]
	holders := s.Holders()
	p := weak.Make(s)
	records.Lock()
	defer records.Unlock()
	if records.m == nil {
		return
	}
	if len(records.m) >= records.limit {
		for p := range records.m {
			if p.Value() == nil {
				delete(records.m, p)
			}
		}
		records.limit = max(minLimit, 2*len(records.m))
	}
	kept := slices.DeleteFunc(records.m[p], func(r record) bool {
		return r.owner == owner || !slices.Contains(holders, r.owner)
	})
	records.m[p] = append(kept, record{owner, stack})
}

// TakenAt returns the stack with which owner took the lock, if that was recorded.
func (s *Sync) TakenAt(owner int64) []uintptr {
	p := weak.Make(s)
	records.Lock()
	defer records.Unlock()
	for _, r := range records.m[p] {
		if r.owner == owner {
			return r.stack
		}
	}
	return nil
}

package waits

import (
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/syncq"
)

// records says where locks were acquired while recording is on. It keeps no lock alive. The entry
// of a holder is from its last acquisition: each acquisition while recording is on writes an
// entry, and switching recording off drops all. Entries of owners that are not holders are left
// over.
var records struct {
	sync.Mutex
	m     map[weak.Pointer[syncq.Sync]]*sites
	limit int    // the length at which forgetDead removes the entries of dead locks
	n     uint64 // the number of sites that were noted
}

// sites says by owner where one lock was taken.
type sites struct {
	of    map[int64]site
	limit int // the length at which thin removes the sites of former holders
}

type site struct {
	stack []uintptr
	n     uint64 // the number of the site among all sites, in the order in which they were noted
}

// minRecords is the least limit of records.
const minRecords = 64

// minSites is the least limit of sites.
const minSites = 4

// maxFrames bounds a recorded stack. The stack begins in this package: a lock that is recorded, and
// a member of a Multi under locks.Do, has a dozen frames of the library above the program's.
const maxFrames = 40

// SetRecording switches the recording of where locks are taken, and reports whether it was on.
//
// Fast paths do not record, and have no time to ask whether to record. They ask [goid.Fast], which
// returns 0 while recording is on, so that no fast path is taken.
func SetRecording(on bool) (was bool) {
	records.Lock()
	defer records.Unlock()
	was = goid.SetRecording(on)
	if on != was {
		records.m = nil
		if on {
			records.m = make(map[weak.Pointer[syncq.Sync]]*sites)
		}
		records.limit = minRecords
	}
	return was
}

// record notes that owner has just taken the lock, and where, if recording is on. With n holders,
// record looks at the holders about once in n acquisitions, so that its cost does not grow with n.
func record(s *syncq.Sync, k *syncq.Kind, owner int64) {
	var frames [maxFrames]uintptr
	stack := slices.Clone(frames[:runtime.Callers(2, frames[:])])
	p := weak.Make(s)
	if n, many := note(p, owner, stack); many {
		// A reader that is upgraded has the lock exclusively before it leaves the table. So if
		// holders misses the reader in the table, s.Owner returns it afterwards.
		thin(p, n, append(holders(s, k, s.Owner()), s.Owner()))
	}
}

// note is record of a stack. It returns the number of the site, and whether the lock has too many
// sites now.
func note(p weak.Pointer[syncq.Sync], owner int64, stack []uintptr) (n uint64, many bool) {
	records.Lock()
	defer records.Unlock()
	if records.m == nil {
		return 0, false
	}
	t := records.m[p]
	if t == nil {
		if len(records.m) >= records.limit {
			forgetDead()
		}
		t = &sites{make(map[int64]site), minSites}
		records.m[p] = t
	}
	records.n++
	t.of[owner] = site{stack, records.n}
	return records.n, len(t.of) > t.limit
}

// forgetDead removes the entries of locks that the garbage collector has freed. records is locked.
func forgetDead() {
	for p := range records.m {
		if p.Value() == nil {
			delete(records.m, p)
		}
	}
	records.limit = max(minRecords, 2*len(records.m))
}

// thin removes the sites of owners that are not among seen, the holders that were seen after site n
// was noted. An owner that has acquired the lock since that look has a later site, which stays.
// Site n stays too. The look can miss the owner of site n if another goroutine of that owner
// changes the mode of its hold meanwhile, and changes it back.
func thin(p weak.Pointer[syncq.Sync], n uint64, seen []int64) {
	keep := make(map[int64]bool, len(seen))
	for _, h := range seen {
		keep[h] = true
	}
	records.Lock()
	defer records.Unlock()
	t := records.m[p]
	if t == nil {
		return
	}
	for owner, at := range t.of {
		if at.n < n && !keep[owner] {
			delete(t.of, owner)
		}
	}
	t.limit = max(minSites, 2*len(t.of))
}

// TakenAt returns the stack with which owner took the lock, or nil if that stack was not recorded.
func TakenAt(s *syncq.Sync, owner int64) []uintptr {
	p := weak.Make(s)
	records.Lock()
	defer records.Unlock()
	if t := records.m[p]; t != nil {
		return t.of[owner].stack
	}
	return nil
}

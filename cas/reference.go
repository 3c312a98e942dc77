package cas

import (
	"sync/atomic"

	"github.com/jucgo/locks/internal/sched"
)

// reference is a pointer and a tag that change as one: an atomic pointer to an immutable pair.
//
// nil stands for the pair of zero values. A pair that was removed from p is never put back.
// Therefore p has the same pair as before only if nobody changed p in between.
type reference[T any, Tag comparable] struct {
	p atomic.Pointer[pair[T, Tag]]
}

type pair[T any, Tag comparable] struct {
	ref *T
	tag Tag
}

func (r *reference[T, Tag]) load() (ref *T, tag Tag) { return r.p.Load().get() }

func (r *reference[T, Tag]) store(ref *T, tag Tag) {
	r.p.Store(&pair[T, Tag]{ref, tag})
}

func (r *reference[T, Tag]) compareAndSwap(oldRef, newRef *T, oldTag, newTag Tag) bool {
	p := r.p.Load()
	if !p.is(oldRef, oldTag) {
		return false
	}
	if oldRef == newRef && oldTag == newTag {
		return true // the pair was there a moment ago, and nothing has to change
	}
	return r.swapFrom(p, oldRef, newRef, oldTag, newTag)
}

// swapFrom is compareAndSwap after p was read. If another pair with the same contents has
// replaced p, it tries again: for the caller nothing has changed, so failing would be wrong.
func (r *reference[T, Tag]) swapFrom(p *pair[T, Tag], oldRef, newRef *T, oldTag, newTag Tag) bool {
	changed := &pair[T, Tag]{newRef, newTag}
	for {
		if sched.On {
			sched.Step()
		}
		if r.p.CompareAndSwap(p, changed) {
			return true
		}
		if p = r.p.Load(); !p.is(oldRef, oldTag) {
			return false
		}
	}
}

// attempt sets the tag if ref is the reference.
func (r *reference[T, Tag]) attempt(ref *T, tag Tag) bool {
	var changed *pair[T, Tag]
	for {
		p := r.p.Load()
		was, wasTag := p.get()
		if was != ref {
			return false
		}
		if wasTag == tag {
			return true
		}
		if changed == nil {
			changed = &pair[T, Tag]{ref, tag}
		}
		if sched.On {
			sched.Step()
		}
		if r.p.CompareAndSwap(p, changed) {
			return true
		}
	}
}

func (p *pair[T, Tag]) get() (ref *T, tag Tag) {
	if p == nil {
		return nil, tag
	}
	return p.ref, p.tag
}

func (p *pair[T, Tag]) is(ref *T, tag Tag) bool {
	r, t := p.get()
	return r == ref && t == tag
}

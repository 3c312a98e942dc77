// Package named has locks by name in this process, for call sites that also work with
// distributed locks: its Provider and the clients of the distributed packages implement
// [locks.Provider].
//
//	func bill(ctx context.Context, p locks.Provider, customer string) error {
//		return locks.Do(ctx, p.Locker(customer), func(ctx context.Context) error {
//			...
//		})
//	}
//
//	err := bill(ctx, new(named.Provider), "ada")
//
// Use package keyed for keys of other types, and for locks without an interface.
package named

import (
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
)

// Provider makes reentrant locks by name. Two locks of one name are the same lock. Names that
// are not in use cost no memory. The zero Provider makes locks that admit by [locks.NonFair]; [New]
// makes others. A Provider is safe for concurrent use. It must not be copied after first use.
type Provider struct {
	once    sync.Once
	mutexes *keyed.Mutexes[string] // use set instead
}

// set returns the set of locks. The first call makes the set of a zero Provider.
func (p *Provider) set() *keyed.Mutexes[string] {
	p.once.Do(func() {
		if p.mutexes == nil {
			p.mutexes = new(keyed.Mutexes[string])
		}
	})
	return p.mutexes
}

var _ locks.Provider = (*Provider)(nil)

// New returns a provider of locks that admit by p.
func New(p locks.Policy) *Provider { return &Provider{mutexes: keyed.New[string](p)} }

// Locker returns the lock called name, a [keyed.Mutex].
func (p *Provider) Locker(name string) locks.TryLocker { return p.set().Of(name) }

// Len returns the number of locks that are held or waited for, or have a condition.
func (p *Provider) Len() int { return p.set().Len() }

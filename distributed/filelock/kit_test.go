package filelock_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// Clients of one process share their open files, so the kit sees the file and one local queue. In
// other tests processes take turns, and are killed.
func TestClientsOfOneProcessPassTheKit(t *testing.T) {
	for name, opts := range map[string][]filelock.Option{
		"plain":  nil,
		"tokens": {filelock.WithTokens(), filelock.WithMaxLocalHandoffs(0)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			leasetest.TestStore(t, leasetest.Config{
				Open: func(tb testing.TB, _ *leasetest.Link, _ ...lease.Option) locks.Provider {
					return provide(tb, dir, opts...)
				},
				Read: func(p locks.Provider, name string) locks.TryLocker {
					return p.(*filelock.Client).RWMutex(name).ReadLocker()
				},
				SpuriousTry: true, // while another attempt fails
			})
		})
	}
}

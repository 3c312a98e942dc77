package redlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Identify is part of [driver.Inspector].
func (m *majority) Identify(client, identity string) {
	for _, node := range m.nodes {
		node.Identify(client, identity)
	}
}

// everywhere calls f for each server at once. If so many servers fail, or do not answer in time,
// that no majority is left, everywhere returns their errors.
func (m *majority) everywhere(ctx context.Context, f func(ctx context.Context, node node) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.patience(lease.DefaultLease))
	defer cancel()
	errs := make([]error, len(m.nodes))
	var wg sync.WaitGroup
	for i, node := range m.nodes {
		wg.Go(func() {
			if err := f(ctx, node); err != nil {
				errs[i] = fmt.Errorf("server %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) > len(m.nodes)-m.quorum {
		return adapter.Join(failed...)
	}
	return nil
}

// Announce is part of [driver.Announcer].
func (m *majority) Announce(ctx context.Context, ttl time.Duration) error {
	return m.everywhere(ctx, func(ctx context.Context, node node) error { return node.Announce(ctx, ttl) })
}

// Inspect finds the client that has the lock on a majority of the servers.
func (m *majority) Inspect(ctx context.Context, name string) (driver.State, error) {
	var mu sync.Mutex
	claims := make(map[string][]driver.Claim) // by the holder's name on the servers
	err := m.everywhere(ctx, func(ctx context.Context, node node) error {
		s, err := node.Inspect(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		for _, h := range s.Holders {
			claims[h.Acquisition] = append(claims[h.Acquisition], h)
		}
		return err
	})
	s := driver.State{Waiting: -1}
	for id, votes := range claims {
		if err != nil || len(votes) < m.quorum {
			continue
		}
		// The lock is free when a majority may be free.
		slices.SortFunc(votes, func(a, b driver.Claim) int { return int(a.Left - b.Left) })
		h := votes[len(votes)-m.quorum]
		for _, v := range votes {
			h.Identity = max(h.Identity, v.Identity) // a server that was down may lack the identity
		}
		h.Acquisition = m.acquisitionOf(id)
		s.Holders = append(s.Holders, h)
	}
	return s, err
}

// acquisitionOf returns the acquisition of the vote that is called id on the servers, or id if the
// vote belongs to another client.
func (m *majority) acquisitionOf(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for acquisition, v := range m.votes {
		if v.id == id {
			return acquisition
		}
	}
	return id
}

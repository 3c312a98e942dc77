package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

var _ driver.Breaker = (*store)(nil)

// Break deletes the node of the present holder of a mutex or a semaphore. Every holder's node has a
// unique name, so a later holder is safe. The nodes of an ephemeral mutex have one name, and a
// read-write lock has several holders: they are not supported.
func (st *store) Break(ctx context.Context, name string) (bool, error) {
	switch st.recipe {
	case queue{mutexMode}, semaphore{}:
	default:
		return false, fmt.Errorf("this kind of lock: %w", errors.ErrUnsupported)
	}
	s, err := st.session(ctx)
	if err != nil {
		return false, err
	}
	for {
		if err := s.sync(ctx, name); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		seen, err := st.recipe.inspect(ctx, s, name)
		if err != nil || len(seen.holders) == 0 {
			return false, err
		}
		if err := s.delete(ctx, seen.holders[0]); !errors.Is(err, zk.ErrNoNode) {
			return err == nil, err
		}
	}
}

// Names returns the names of the locks that match pattern and are held or waited for, sorted. The
// pattern has the syntax of [path.Match], and the empty pattern matches all names. Names come
// without a slash in front. The result includes locks of all kinds, also locks of Curator. Names
// asks for the children of each node below the namespace, one request each, until ctx ends. A tree
// with many other nodes is slow to read.
func (c *Client) Names(ctx context.Context, pattern string) ([]string, error) {
	return adapter.Names(ctx, "zklock: list names", pattern, func(add func(name string)) error {
		return c.list(ctx, add)
	})
}

func (c *Client) list(ctx context.Context, add func(name string)) error {
	s, err := c.core.session(ctx)
	if err != nil {
		return err
	}
	for todo := []string{c.namespace}; len(todo) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		children, err := childrenIf(ctx, s, cmp.Or(dir, "/"))
		if err != nil {
			return err
		}
		places := placesIn(children)
		if name, ok := c.lockIn(dir, places); ok {
			add(name)
		}
		for _, child := range children {
			below := dir + "/" + child
			if below != c.core.clients && below != "/zookeeper" && !slices.Contains(places, child) {
				todo = append(todo, below)
			}
		}
	}
	return nil
}

// lockIn returns the name of the lock that has places in a directory.
func (c *Client) lockIn(dir string, places []string) (name string, ok bool) {
	name = strings.TrimPrefix(strings.TrimPrefix(dir, c.namespace), "/")
	if len(places) == 0 || name == "" {
		return "", false
	}
	if _, lease := sequence(places[0], leasePrefix); lease { // of a semaphore
		return strings.CutSuffix(name, leasesDir)
	}
	return name, true
}

// Package info describes the locks of this process for their Inspect methods.
package info

import (
	"context"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
)

// State describes a lock of this process.
type State struct {
	Held, Shared bool
	Holders      []locks.Owner // the zero Owner stands for nobody
	Waiting      int           // if it is more than there are Waiters
	Waiters      []locks.Owner
}

// Answer returns s as the answer to op.
func (s State) Answer(op string, ctx context.Context) (locks.Info, error) {
	if err := ctxerr.Check(op, ctx); err != nil {
		return locks.Info{}, err
	}
	return locks.Info{
		Held: s.Held, Shared: s.Shared, Holders: parties(s.Holders),
		Waiting: max(s.Waiting, len(s.Waiters)), Waiters: parties(s.Waiters),
	}, nil
}

func parties(owners []locks.Owner) (all []locks.Party) {
	for _, o := range owners {
		if o != 0 {
			all = append(all, locks.Party{Owner: o})
		}
	}
	return all
}

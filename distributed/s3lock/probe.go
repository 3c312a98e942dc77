package s3lock

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// ErrUnsafe is matched by errors that say that a store does not keep the promise on which locks
// rely. Such an error does not pass by itself: use another store, or another version of its server.
var ErrUnsafe = errors.New("this store is not safe for locks")

const (
	// racers is how many writes of one object a probe sends at the same time.
	racers = 8
	// cleanup is for how long a probe that failed tries to delete its object.
	cleanup = 5 * time.Second
)

// Probe finds out whether a store keeps the promise on which locks rely. [New] does the same before
// the first write of a client. Call Probe to test the store when a program starts, or to race a
// store for longer: a store that breaks its promise once in a hundred races passes most probes.
//
// Probe lets eight writers create one object, and then eight writers replace it. One of each eight
// may succeed. A read then must return the data that was written, and nothing after a deletion. A
// probe takes 16 writes, two reads and two deletions, in six round trips. Probe deletes the object.
// The key is the prefix, "probe-" and a random text.
//
// The error matches [ErrUnsafe] if the store has failed. Any other error says that the probe could
// not be finished, such as for want of a right. An object may be left then.
func Probe(ctx context.Context, client *s3.Client, bucket string, opts ...Option) error {
	d, _, err := newDocuments(client, bucket, opts)
	if err == nil {
		err = d.probe(ctx)
	}
	if err != nil {
		return fmt.Errorf("s3lock: probe: %w", adapter.OfStore(ctx, err))
	}
	return nil
}

// ensureProbe returns nil if the store is safe. The first caller probes, and others wait for the
// result.
func (d *documents) ensureProbe(ctx context.Context) error {
	if d.trusted.Load() {
		return nil
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if d.trusted.Load() || d.verdict != nil {
		return d.verdict
	}
	// Other writers wait. A context of the program may run code of the program that waits for them.
	err := d.probe(adapter.Detach(ctx, context.Background()))
	switch {
	case err == nil:
		d.trusted.Store(true)
	case errors.Is(err, ErrUnsafe):
		d.verdict = err
	}
	return err
}

func (d *documents) probe(ctx context.Context) error {
	key := d.prefix + "probe-" + rand.Text()
	err := d.try(ctx, key)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
		defer cancel()
		_ = d.delete(ctx, key, nil)
	}
	return err
}

// try asks the store with an object that is not there yet.
func (d *documents) try(ctx context.Context, key string) error {
	created, err := d.race(ctx, key, "", "creations of one object")
	if err != nil {
		return err
	}
	replaced, err := d.race(ctx, key, created.version, "replacements of one version")
	if err != nil {
		return err
	}
	data, version, err := d.load(ctx, key)
	switch {
	case err != nil:
		return err
	case version != replaced.version || !bytes.Equal(data, replaced.data):
		return unsafe("a read returned something else than the last write")
	}
	err = d.delete(ctx, key, &created.version)
	d.blind.Store(!errors.Is(err, caslock.ErrConflict))
	switch {
	case errors.Is(err, caslock.ErrConflict):
		if err = d.delete(ctx, key, &version); errors.Is(err, caslock.ErrConflict) {
			err = unsafe("a deletion was refused although the object had not changed")
		}
	case errors.Is(err, errBlind):
		err = d.delete(ctx, key, nil)
	}
	if err != nil {
		return err
	}
	if _, version, err = d.load(ctx, key); err == nil && version != "" {
		return unsafe("a read returned an object after its deletion")
	}
	return err
}

// written is an object that a writer has written.
type written struct {
	data    []byte
	version string
	err     error
}

// race lets several writers replace one version of an object, and returns the write that succeeded.
func (d *documents) race(ctx context.Context, key, version, what string) (winner written, err error) {
	writes := make([]written, racers)
	write := func(w *written) {
		w.data = []byte(rand.Text())
		w.version, w.err = d.swap(ctx, key, w.data, version)
	}
	var wg sync.WaitGroup
	for i := range writes {
		wg.Go(func() { write(&writes[i]) })
	}
	wg.Wait()
	won := 0
	for _, w := range writes {
		switch {
		case w.err == nil:
			won++
			winner = w
		case !errors.Is(w.err, caslock.ErrConflict):
			err = w.err
		}
	}
	switch {
	case won > 1:
		return written{}, unsafe("%d of %d %s succeeded at the same time, and one may", won, racers, what)
	case err != nil:
		return written{}, err
	case won == 0: // a store may refuse all writes that it gets at the same time
		if write(&winner); errors.Is(winner.err, caslock.ErrConflict) {
			return written{}, unsafe("none of %d %s succeeded, and neither did one alone", racers, what)
		} else if winner.err != nil {
			return written{}, winner.err
		}
	}
	if winner.version == "" || winner.version == version {
		return written{}, unsafe("the answer to a write has no new ETag")
	}
	return winner, nil
}

func unsafe(format string, args ...any) error {
	return driver.Mark(fmt.Errorf("%w: "+format, append([]any{ErrUnsafe}, args...)...), driver.ErrRefused)
}

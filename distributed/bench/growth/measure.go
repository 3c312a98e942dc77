package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
)

// prefix begins the names of all locks.
const prefix = "growth"

// measurement is one row: a phase with n locks of one store.
type measurement struct {
	settings
	store *store
	n     int
	base  string            // begins the names of the locks
	of    []locks.TryLocker // the locks that client holds
	as    context.Context   // of their owner
	*client
}

// errLost is the result if the holder has lost locks, such as on a machine that is too slow.
var errLost = errors.New("a waiter got a lock that was held")

// runs counts the measurements of this process, so that no two of them share a name.
var runs atomic.Int64

// measure returns the row of a phase.
func measure(ctx context.Context, s settings, at, phase string, n int) (row []string, err error) {
	st, err := newStore(at, s.ttl)
	if err != nil {
		return nil, err
	}
	m := &measurement{settings: s, store: st, n: n}
	if m.client, err = st.open(ctx); err != nil {
		return nil, err
	}
	m.as = locks.WithOwner(ctx, locks.NewOwner())
	m.base = fmt.Sprintf("%s.%d.%d.", prefix, os.Getpid(), runs.Add(1))
	first := m.Locker(m.base + "first") // opens connections, and loads scripts
	if err = errors.Join(first.LockContext(m.as), first.UnlockContext(m.as)); err != nil {
		return nil, err
	}
	locked := n
	if phase == "crowd" {
		locked = 1
	}
	m.of = make([]locks.TryLocker, locked)
	before := takeUsage(m.client, st.port)
	took, err := m.forAll(func(i int) error {
		m.of[i] = m.Locker(m.name(i))
		err := m.of[i].LockContext(m.as)
		if err == nil && phase == "names" {
			err = m.of[i].UnlockContext(m.as)
			m.of[i] = nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	switch phase {
	case "held":
		row, err = m.held(before, took)
	case "names":
		row, err = m.used(before)
	default:
		row, err = m.waiting(ctx)
	}
	if err == nil {
		row = append([]string{st.name, fmt.Sprint(n)}, row...)
	}
	return row, err
}

func (m *measurement) name(i int) string { return fmt.Sprintf("%s%07d", m.base, i) }

// forAll calls f for each lock from several goroutines, and returns the first error.
func (m *measurement) forAll(f func(i int) error) (time.Duration, error) {
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	failed := make(chan error, m.workers)
	for range min(m.workers, len(m.of)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(m.of); i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return time.Since(began), nil
	}
}

// held measures what n holds cost.
func (m *measurement) held(before usage, took time.Duration) ([]string, error) {
	all := takeUsage(m.client, m.store.port).since(before)
	ctx := context.Background()
	inspect := "-"
	if l, ok := m.of[0].(locks.Inspector); ok {
		began := time.Now()
		info, err := l.Inspect(ctx)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
		case err != nil:
			return nil, err
		case !info.Held:
			return nil, errors.New("inspect: a held lock is free")
		default:
			inspect = round(time.Since(began))
		}
	}
	names, err := m.list(m.n)
	if err != nil {
		return nil, err
	}
	messages, bytes, spent := m.renewals()
	for _, l := range m.of {
		leased, ok := l.(locks.Leased)
		if !ok {
			continue
		}
		h, err := leased.Hold(m.as)
		if err == nil {
			err = h.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	closed, err := m.end()
	if err != nil {
		return nil, err
	}
	return []string{
		m.each(all.memory), fmt.Sprint(all.goroutines), m.each(all.server), m.ratio(all.messages), m.each(all.bytes),
		fmt.Sprint(messages), size(bytes), spent, round(took), inspect, names, closed,
	}, nil
}

// renewals counts during a third of the lease, in which each hold is renewed once. The time is how
// much of that had messages.
func (m *measurement) renewals() (messages, bytes int64, spent string) {
	if m.store.name == "mem" {
		return 0, 0, "-"
	}
	const look = 5 * time.Millisecond
	first, bytesBefore := m.calls()
	last, busy := first, 0
	for end := time.Now().Add(m.ttl / 3); time.Now().Before(end); {
		time.Sleep(look)
		now, _ := m.calls()
		if now != last {
			busy++
		}
		last = now
	}
	_, bytes = m.calls()
	return last - first, bytes - bytesBefore, round(time.Duration(busy) * look)
}

// used measures what names cost whose locks are free.
func (m *measurement) used(before usage) ([]string, error) {
	all := takeUsage(m.client, m.store.port).since(before)
	names, err := m.list(0)
	if err != nil {
		return nil, err
	}
	closed, err := m.end()
	return []string{
		m.each(all.memory), fmt.Sprint(all.goroutines), m.each(all.server), m.ratio(all.messages), m.each(all.bytes),
		names, closed,
	}, err
}

// list measures Names, which lists at least so many.
func (m *measurement) list(least int) (string, error) {
	if m.names == nil {
		return "-", nil
	}
	began := time.Now()
	names, err := m.names(context.Background())
	if err != nil {
		return "", err
	}
	if len(names) < least {
		return "", fmt.Errorf("names: %d of %d locks", len(names), least)
	}
	return round(time.Since(began)), nil
}

// waiting measures n goroutines of another client that wait for the locks.
func (m *measurement) waiting(ctx context.Context) ([]string, error) {
	other, err := m.store.open(ctx)
	if err != nil {
		return nil, err
	}
	before := takeUsage(other, m.store.port)
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	var started atomic.Int64
	early := make(chan error, 1) // of a waiter that did not wait
	var wg sync.WaitGroup
	for i := range m.n {
		wg.Go(func() {
			l := other.Locker(m.name(i % len(m.of)))
			started.Add(1)
			switch err := l.LockContext(waits); {
			case err == nil:
				err = errLost
				fallthrough
			case waits.Err() == nil:
				select {
				case early <- err:
				default:
				}
			}
		})
	}
	for started.Load() < int64(m.n) {
		time.Sleep(time.Millisecond)
	}
	settle(other, m.watched)
	all := takeUsage(other, m.store.port).since(before)
	messagesBefore, bytesBefore := other.calls()
	time.Sleep(m.watched)
	messages, bytes := other.calls()
	began := time.Now()
	cancel()
	wg.Wait()
	cancelled := round(time.Since(began))
	select {
	case err := <-early:
		return nil, err
	default:
	}
	if err := other.close(context.Background()); err != nil {
		return nil, err
	}
	if _, err := m.end(); err != nil {
		return nil, err
	}
	each := func(n int64) int64 { return n * int64(time.Second) / int64(m.watched) }
	return []string{
		m.each(all.memory), fmt.Sprint(all.goroutines), m.each(all.server),
		fmt.Sprint(each(messages - messagesBefore)), size(each(bytes - bytesBefore)), cancelled,
	}, nil
}

// settle waits until the waiters have no more to begin: the number of goroutines and the pace of
// messages stay the same for a while. It waits for a minute at most, since some waiters poll.
func settle(c *client, while time.Duration) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		goroutines := runtime.NumGoroutine()
		first, _ := c.calls()
		time.Sleep(while / 4)
		half, _ := c.calls()
		time.Sleep(while / 4)
		last, _ := c.calls()
		pace, later := half-first, last-half
		if goroutines == runtime.NumGoroutine() && later <= pace+pace/4+10 && pace <= later+later/4+10 {
			return
		}
	}
}

// end closes the client. The locks of mem are unlocked one by one.
func (m *measurement) end() (string, error) {
	began := time.Now()
	if m.store.name == "mem" {
		for _, l := range m.of {
			if l == nil {
				continue
			}
			if err := l.UnlockContext(m.as); err != nil {
				return "", err
			}
		}
	}
	err := m.close(context.Background())
	return round(time.Since(began)), err
}

// each returns a number of bytes for each of the n locks.
func (m *measurement) each(bytes int64) string { return size(bytes / int64(m.n)) }

func (m *measurement) ratio(messages int64) string {
	return fmt.Sprintf("%.2f", float64(messages)/float64(m.n))
}

// size writes a number of bytes with two digits that count.
func size(bytes int64) string {
	switch {
	case bytes >= 10<<20 || bytes <= -10<<20:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes >= 10<<10 || bytes <= -10<<10:
		return fmt.Sprintf("%d kB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// round writes a time with one digit that counts, since no more than its order of magnitude does.
func round(d time.Duration) string {
	unit := time.Duration(1)
	for d >= 10*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

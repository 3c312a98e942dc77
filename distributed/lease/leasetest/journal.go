package leasetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// journal remembers the last events of each client.
type journal struct {
	mu     sync.Mutex
	began  time.Time
	events map[int][]event // by client, the oldest first
}

type event struct {
	at   time.Duration
	who  int
	text string
}

// remembered is how many events of a client the journal keeps.
const remembered = 200

func newJournal() *journal { return &journal{began: time.Now(), events: make(map[int][]event)} }

func (j *journal) add(who int, format string, args ...any) {
	e := event{time.Since(j.began), who, fmt.Sprintf(format, args...)}
	j.mu.Lock()
	defer j.mu.Unlock()
	events := append(j.events[who], e)
	if len(events) > 2*remembered {
		events = slices.Clone(events[remembered:])
	}
	j.events[who] = events
}

// last returns the last n events of each of these clients, or of all clients if none is given, in
// order of time. They are about the lock called name, or about none.
func (j *journal) last(n int, name string, clients ...int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []event
	for who, events := range j.events {
		if len(clients) == 0 || slices.Contains(clients, who) {
			events = slices.DeleteFunc(slices.Clone(events), func(e event) bool {
				return name != "" && strings.Contains(e.text, `"`) && !strings.Contains(e.text, name)
			})
			all = append(all, events[max(0, len(events)-n):]...)
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return int(a.at - b.at) })
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "  %8.3f s  client %d: %s\n", e.at.Seconds(), e.who, e.text)
	}
	return b.String()
}

package zklock

import (
	"time"
)

// State is what is known of the session with ZooKeeper, on which all holds of a [Client] depend.
type State int

const (
	// Held is the state of a session that the servers answered lately: within two thirds of its timeout.
	Held State = iota
	// Suspect is that of one whose connection is lost, or that had no answer for two thirds of its timeout. Its holds are
	// valid still, and stay so if a server can be reached in time.
	Suspect
	// Lost is that of one that may be over: it had no answer for its timeout less the margin, or is known to be over.
	// Everything that
	// was held by it is lost for good, even if it should live on.
	Lost
)

// String returns "held", "suspect" or "lost".
func (s State) String() string {
	switch s {
	case Held:
		return "held"
	case Suspect:
		return "suspect"
	}
	return "lost"
}

// state returns the state and when it will be another one if nothing happens, or the zero time.
func (c *core) state(margin func(time.Duration) time.Duration) (State, time.Time) {
	c.mu.Lock()
	s := c.sess
	c.mu.Unlock()
	if s == nil {
		return Lost, time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	lost := s.contact.Add(s.timeout - margin(s.timeout))
	suspect := s.contact.Add(s.timeout * 2 / 3)
	switch {
	case s.over != nil || !now.Before(lost):
		return Lost, time.Time{}
	case !s.up || !now.Before(suspect):
		return Suspect, lost
	}
	return Held, suspect
}

// observe tells of each change of the state.
func (c *Client) observe() {
	last := Held
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		state, next := c.core.state(c.marginOf)
		if state != last {
			last = state
			c.core.told(state)
		}
		switch {
		case !next.IsZero():
			timer.Reset(max(time.Until(next), 0))
		case state == Lost:
			timer.Reset(max(c.core.Term()/20, time.Millisecond)) // a session may live on, of which an answer tells without a pulse
		}
		select {
		case <-timer.C:
		case <-c.core.beats:
		case <-c.core.life.Done():
			return
		}
	}
}

// State returns what is known of the session. A hold of a session that is Suspect may be lost soon: it is time to come to an end.
func (c *Client) State() State {
	state, _ := c.core.state(c.marginOf)
	return state
}

package zklock

import (
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// State is the known state of the session with ZooKeeper, on which all holds of a [Client] depend.
type State int

const (
	// Held says that the leader has confirmed the session within two thirds of its timeout.
	Held State = iota
	// Suspect says that the connection is lost, or that the leader has not confirmed the
	// session for two thirds of its timeout. The holds are still valid, and stay valid if a
	// server can be reached in time.
	Suspect
	// Lost says that the session may be over: the leader has not confirmed it for its timeout
	// less the margin, or it is known to be over. All its holds are lost for good, even if the
	// session lives on.
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

// state returns the state, and the time by driver.Now when it changes unless an answer comes
// before, or the zero time.
func (c *core) state(margin func(time.Duration) time.Duration) (State, time.Time) {
	c.mu.Lock()
	s := c.sess
	c.mu.Unlock()
	if s == nil {
		return Lost, time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := driver.Now()
	lost := s.confirmed.Add(s.timeout - margin(s.timeout))
	suspect := s.confirmed.Add(s.timeout * 2 / 3)
	switch {
	case s.over != nil || !now.Before(lost):
		return Lost, time.Time{}
	case !s.up || !now.Before(suspect):
		return Suspect, lost
	}
	return Held, suspect
}

// observe reports each change of the state.
func (c *Client) observe() {
	last := Held
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		state, next := c.core.state(c.marginOf)
		if state != last {
			last = state
			c.core.onState(state)
		}
		switch {
		case !next.IsZero():
			timer.Reset(max(next.Sub(driver.Now()), 0))
		case state == Lost: // the session may live on: an answer changes the state without a pulse
			timer.Reset(max(c.core.Term()/20, time.Millisecond))
		}
		select {
		case <-timer.C:
		case <-c.core.beats:
		case <-c.core.life.Done():
			return
		}
	}
}

// State returns the known state of the session. While the state is Suspect, a hold may be lost
// soon, and its holder should finish its work.
func (c *Client) State() State {
	state, _ := c.core.state(c.marginOf)
	return state
}

package filelock

import "time"

// Whether a file that was locked is still the one that has the name must be known each time, once the lock is there: a file that
// was unlinked and made anew is another one, and whoever comes later locks that. Before the lock is there the answer could be
// out of date at once. A look asks the system which file has the name. It costs more than the lock. So a name that was looked
// at often gets an alarm, where there are such things: then the question is whether the alarm has rung.
const (
	// often is how many looks in a row, none of which is older than fresh at the next, make it worth to set an alarm. After one
	// has rung it is as many again.
	often = 16
	// seldom is how many it takes after the system has refused one.
	seldom = 4096
)

// fresh is for how long a look counts, with an alarm: nobody relies on one for longer without a look of its own, whatever
// might be that rings none, such as that the process changes its root. It is a variable for tests.
var fresh = 100 * time.Millisecond

// sight is the last look at a name of a file, which had it. It is guarded by the file's mutex.
type sight struct {
	path  string
	at    time.Duration // since started
	row   int           // looks in a row, less those to wait for because an alarm was refused
	alarm *alarm        // or nil
}

var started = time.Now()

// named reports whether the lock's place is f's name. f.mu is held, and so is the kernel's lock.
func (f *file) named(l *Lock) (bool, error) {
	if l.p.trust {
		return true, nil
	}
	s, now := &f.sight, time.Since(started)
	if s.path != l.place.path {
		s.forget()
		s.path, s.row = l.place.path, 0
	}
	recent := now-s.at < fresh
	if s.alarm != nil {
		silent, rung := s.alarm.silent()
		switch {
		case silent && recent:
			return true, nil
		case rung:
			s.forget()
			s.row = 0
		}
	} else if !recent {
		s.row = min(s.row, 0)
	} else if s.row >= often {
		var busy bool
		if s.alarm, busy = f.d.setAlarm(l.place, f.id); s.alarm == nil && !busy {
			s.row = often - seldom
		}
	}
	// The look comes after the alarm is set: what happens in between rings it.
	same, err := f.d.names(l.place, f.id)
	if !same {
		s.forget()
		s.row = 0
		return false, err
	}
	s.at = now // when it was no later than that
	s.row++
	return true, nil
}

// forget ends the alarm, if there is one.
func (s *sight) forget() {
	if s.alarm != nil {
		s.alarm.end()
		s.alarm = nil
	}
}

package zklock

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestAnHeirSucceedsOnceAndOnlyOnTheConnectionOfItsWatchesAndSoonAfterAnAnswer(t *testing.T) {
	const path, link = "/it/before", 7
	for name, c := range map[string]struct {
		before, after func(r *record, s *session) // the event
		want          bool
	}{
		"as it should be":           {want: true},
		"another node":              {before: func(r *record, _ *session) { r.heir.path = "/it/another" }},
		"a connection before":       {before: func(_ *record, s *session) { s.links.Add(1) }},
		"a connection after":        {after: func(_ *record, s *session) { s.links.Add(1) }},
		"no connection":             {after: func(_ *record, s *session) { s.up = false }},
		"no answer for some time":   {after: func(_ *record, s *session) { s.led = time.Now().Add(-s.timeout / 2) }},
		"a place that was given up": {after: func(r *record, _ *session) { r.heir = heir{} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{up: true, timeout: time.Minute, led: time.Now().Add(-time.Second)}
			s.links.Store(link)
			r := &record{span: time.Minute, own: &node{s: s}, heir: heir{path: path, link: link}}
			require.False(t, r.succeeds(), "without an event")
			if c.before != nil {
				c.before(r, s)
			}
			r.passed(path)
			if c.after != nil {
				c.after(r, s)
			}
			require.Equal(t, c.want, r.succeeds())
			require.False(t, r.succeeds(), "once")
			if c.want {
				require.Equal(t, s.led, r.since)
			}
		})
	}
}

func TestTurnsAreAnAverageInWhichTheLastCountMostAndOfNotTooManyLocks(t *testing.T) {
	var ts turns
	require.Zero(t, ts.get("it"))
	ts.set("it", 4*time.Second)
	require.Equal(t, 4*time.Second, ts.get("it"))
	ts.set("it", 2*time.Second)
	ts.set("it", time.Second)
	require.Equal(t, 2*time.Second, ts.get("it"))
	for i := range 10 * mostName {
		ts.set(strconv.Itoa(i), time.Second)
		require.LessOrEqual(t, len(ts.m), mostName)
	}
	require.Equal(t, time.Second, ts.get(strconv.Itoa(10*mostName-1)))
}

func TestALookGrantsTheLockIfItShowsTheOwnNodeAndNoneBeforeIt(t *testing.T) {
	const own, before, after = "_c_2-lock-0000000002", "_c_1-lock-0000000001", "_c_3-lock-0000000003"
	asked := time.Now().Add(-current / 8)
	for name, c := range map[string]struct {
		names  []string
		change func(l *look)
		told   bool // there is an answer
		want   bool
	}{
		"the first":         {names: []string{after, own}, told: true, want: true},
		"the only one":      {names: []string{own}, told: true, want: true},
		"one before":        {names: []string{after, own, before}, told: true},
		"gone":              {names: []string{after}, told: true},
		"another lock":      {names: []string{own, "_c_3-__WRIT__0000000003"}, told: true},
		"another session":   {names: []string{own}, told: true, change: func(l *look) { l.s = &session{} }},
		"another directory": {names: []string{own}, told: true, change: func(l *look) { l.dir = "/other" }},
		"no answer":         {names: []string{own}, told: true, change: func(l *look) { l.err = errTimeout }},
		"asked long ago":    {names: []string{own}, told: true, change: func(l *look) { l.sent = time.Now().Add(-2 * current) }},
		"an old session":    {names: []string{own}, told: true, change: func(l *look) { l.s.led = time.Now().Add(-l.s.timeout / 2) }},
		"no answer yet":     {names: []string{own}, change: func(l *look) { l.done = make(chan struct{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{up: true, timeout: time.Minute, led: time.Now()}
			l := &look{s: s, dir: "/it", names: c.names, done: make(chan struct{})}
			l.sent = asked
			close(l.done)
			if c.change != nil {
				c.change(l)
			}
			q := new(queue)
			r := &record{span: time.Minute, own: &node{s: s, dir: "/it", name: own}, look: l}
			require.Equal(t, c.told, r.told())
			require.Equal(t, c.want, q.first(r))
			if c.want {
				require.Equal(t, asked, r.since, "the hold counts from the question")
			}
			r.own = nil
			r.reset()
			require.False(t, r.told(), "it was of that node")
		})
	}
}

func TestANodeOfWhichTheServerDoesNotTellIsNotObserved(t *testing.T) {
	s := &session{}
	s.points.m = make(map[place]*point)
	n := &node{s: s, dir: "/it", name: "own"}
	at := place{n.path(), false}
	require.False(t, n.observed())
	n.hear = func(bool) {}
	s.points.listen(at, n, n.event)
	require.False(t, n.observed(), "the question for it may have failed")
	_, fired := s.points.arming(at)
	require.True(t, s.points.armed(at, fired))
	require.True(t, n.observed())
	s.points.fire(zk.Event{Type: zk.EventNodeDataChanged, Path: n.path()})
	require.False(t, n.observed(), "that was the watch")
	n.doom = make(chan struct{})
	require.True(t, n.observed(), "it need not be")
}

func TestWhatAWaiterKnewOfItsPlaceIsForgottenWhenItHasTheLock(t *testing.T) {
	c := &core{term: time.Minute, life: t.Context()}
	s := &session{c: c, up: true, timeout: time.Minute, led: time.Now()}
	s.points.m = make(map[place]*point)
	q := &queue{}
	q.store.init(c)
	l := &look{s: s, dir: "/it", names: []string{"lock-0000000002"}, done: make(chan struct{})}
	l.sent = s.led.Add(-time.Millisecond)
	close(l.done)
	r := q.record(t.Context(), "/it", "me")
	r.span = time.Minute
	r.own, r.look = &node{c: c, s: s, dir: "/it", name: "lock-0000000002"}, l
	r.own.hear = func(bool) {}
	s.points.listen(place{r.own.path(), false}, r.own, r.own.event)
	s.points.armed(place{r.own.path(), false}, 0)
	reply, ok := q.Granted("/it", "me")
	require.True(t, ok)
	require.True(t, reply.Held)
	require.Equal(t, l.sent, reply.Since)
	r.rouse() // or nothing is looked at so soon
	_, ok = q.Granted("/it", "me")
	require.False(t, ok, "twice by one answer")
}

func TestAHoldCountsFromWhenTheLeaderHasConfirmedTheSessionIfThatWasBeforeTheAnswer(t *testing.T) {
	s := &session{up: true, timeout: time.Minute, contact: time.Now(), led: time.Now().Add(-time.Second)}
	l := &look{s: s, dir: "/it", names: []string{"lock-0000000002"}, done: make(chan struct{})}
	l.sent = time.Now()
	close(l.done)
	r := &record{span: time.Minute, own: &node{s: s, dir: "/it", name: "lock-0000000002"}, look: l}
	require.True(t, new(queue).first(r))
	require.Equal(t, s.led, r.since, "of a look")
	r.since = time.Time{}
	require.NoError(t, r.confirm(t.Context()))
	require.Equal(t, s.led, r.since, "of a list")
	r.since = time.Time{}
	r.heir = heir{turn: true}
	require.True(t, r.succeeds())
	require.Equal(t, s.led, r.since, "of an heir")
	r.heir = heir{turn: true}
	r.span = 2 * time.Second
	require.False(t, r.succeeds(), "too little would be left of a short one")
}

func TestOnlyWhatTheLeaderHasToAnswerConfirmsASession(t *testing.T) {
	s := &session{flights: make(map[*flight]struct{}), up: true, timeout: time.Minute}
	began := time.Now()
	s.greeted(1, time.Minute, began)
	require.Equal(t, began, s.led, "a connection")
	for _, led := range []bool{false, true} {
		f := &flight{led: led}
		require.True(t, s.departNow(f))
		s.land(f, false)
		require.Equal(t, began, s.led, "no answer")
		s.land(f, true)
		require.Equal(t, f.sent, s.contact)
		require.Equal(t, led, s.led == f.sent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.led, s.up = time.Now().Add(-s.timeout), false
	r := &record{span: time.Minute, own: &node{s: s}}
	require.Error(t, r.confirm(ctx), "it asks, but there is no connection")
	require.Zero(t, r.since)
}

package zklock

import (
	"strconv"
	"testing"
	"time"

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
		"no answer for some time":   {after: func(_ *record, s *session) { s.contact = time.Now().Add(-s.timeout / 2) }},
		"a place that was given up": {after: func(r *record, _ *session) { r.heir = heir{} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{up: true, timeout: time.Minute, contact: time.Now().Add(-time.Second)}
			s.links.Store(link)
			r := &record{own: &node{s: s}, heir: heir{path: path, link: link}}
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
				require.Equal(t, s.contact, r.since)
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

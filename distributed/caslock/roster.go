package caslock

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// roster is the content of a document: the acquisitions that have the permits of a semaphore. A
// lock is a semaphore of one permit.
type roster struct {
	holders []holder
	token   uint64 // of the last acquisition
	written time.Time
	nonce   string
	// lastReleased are the last acquisitions that were released, one for a lock. A client whose
	// release was carried out finds its acquisition here if it sees only the answer to a
	// repetition.
	lastReleased []string
}

// remembered is how many releases the document of a semaphore lists. Each holder replaces the
// document, so several holders may release while a client reads the document again.
const remembered = 8

// holder is the entry of one acquisition.
type holder struct {
	acquisition string
	identity    string
	permits     int64
	lease       time.Duration
	token       uint64
	since       time.Time // when it acquired them, by its clock
	renewals    uint64    // how often the acquisition has written its entry again
	seen        time.Time // when this client saw the entry first, as it is. It is not written
}

// timeLeft returns for how long the holder may still rely on its lease.
func (h holder) timeLeft() time.Duration {
	term := min(h.lease, longest)
	return term + term/drift - driver.Now().Sub(h.seen)
}

// same reports whether h and other, which are of one acquisition, are the same entry, which the
// holder has not renewed in between.
func (h holder) same(other holder) bool {
	return h.token == other.token && h.renewals == other.renewals
}

// index returns where the entry of an acquisition is, or -1.
func (r *roster) index(acquisition string) int {
	return slices.IndexFunc(r.holders, func(h holder) bool { return h.acquisition == acquisition })
}

// release removes the entry at i, and remembers its acquisition.
func (r *roster) release(i int) {
	r.lastReleased = append(slices.Clone(r.lastReleased), r.holders[i].acquisition)
	r.lastReleased = r.lastReleased[max(0, len(r.lastReleased)-remembered):]
	r.holders = slices.Delete(r.holders, i, i+1)
}

// expire removes the holders whose time is over. It returns how many permits the others have, and
// the time until the first of them ends.
func (r *roster) expire() (taken int64, next time.Duration) {
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool {
		left := h.timeLeft()
		if left <= 0 {
			return true
		}
		if next == 0 || left < next {
			next = left
		}
		taken += min(h.permits, math.MaxInt64-taken)
		return false
	})
	return taken, next
}

// longestLease returns the longest lease of a holder.
func (r *roster) longestLease() (d time.Duration) {
	for _, h := range r.holders {
		d = max(d, min(h.lease, longest))
	}
	return d
}

// codec is how documents write a roster.
type codec interface {
	encode(r roster) ([]byte, error)
	decode(data []byte) (roster, error)
}

// lockCodec writes the Record of a lock.
type lockCodec struct{ Format }

func (c lockCodec) encode(r roster) ([]byte, error) {
	rec := Record{Token: r.token, Written: r.written, Nonce: r.nonce}
	if n := len(r.lastReleased); n > 0 {
		rec.Released = r.lastReleased[n-1]
	}
	for _, h := range r.holders { // one at most
		rec.Holder, rec.Identity, rec.Lease, rec.Since = h.acquisition, h.identity, h.lease, h.since
	}
	return c.Encode(rec)
}

func (c lockCodec) decode(data []byte) (roster, error) {
	rec, err := c.Decode(data)
	r := roster{token: rec.Token, written: rec.Written, nonce: rec.Nonce}
	if rec.Released != "" {
		r.lastReleased = []string{rec.Released}
	}
	if rec.Holder != "" {
		r.holders = []holder{{
			acquisition: rec.Holder, identity: rec.Identity, permits: 1, lease: rec.Lease, token: rec.Token,
			since: rec.Since,
		}}
	}
	return r, err
}

// semaphoreCodec writes
//
//	{"cassemaphore": 1, "token": 8, "holders": [
//	 {"holder": "0193...:17", "permits": 2, "token": 7, "renewals": 4, "lease_ms": 30000,
//	  "by": {"label": "web-1"}, "since": "2027-01-31T12:00:00Z"}, ...],
//	 "written": "2027-01-31T12:00:10Z", "write": "GX5T...", "released": ["0193...:16", ...]}
type semaphoreCodec struct{}

type jsonRoster struct {
	Format   int          `json:"cassemaphore"`
	Token    uint64       `json:"token"`
	Holders  []jsonHolder `json:"holders,omitempty"`
	Written  time.Time    `json:"written,omitzero"`
	Write    string       `json:"write"`
	Released []string     `json:"released,omitempty"`
}

type jsonHolder struct {
	Holder   string          `json:"holder"`
	Permits  int64           `json:"permits"`
	Token    uint64          `json:"token"`
	Renewals uint64          `json:"renewals,omitempty"`
	Lease    int64           `json:"lease_ms"`
	By       json.RawMessage `json:"by,omitempty"`
	Since    time.Time       `json:"since,omitzero"`
}

func (semaphoreCodec) encode(r roster) ([]byte, error) {
	j := jsonRoster{Format: version, Token: r.token, Written: r.written, Write: r.nonce, Released: r.lastReleased}
	for _, h := range r.holders {
		e := jsonHolder{
			Holder: h.acquisition, Permits: h.permits, Token: h.token, Renewals: h.renewals,
			Lease: millis(h.lease), Since: h.since,
		}
		if json.Valid([]byte(h.identity)) {
			e.By = json.RawMessage(h.identity)
		}
		j.Holders = append(j.Holders, e)
	}
	return json.Marshal(j)
}

func (semaphoreCodec) decode(data []byte) (roster, error) {
	var j jsonRoster
	err := json.Unmarshal(data, &j)
	switch {
	case err != nil:
		return roster{}, err
	case j.Format != version:
		// A store that remembers deletions has an unused lock in place of a deleted document.
		if rec, err := JSON.Decode(data); err == nil && rec.Holder == "" && rec.Token == 0 {
			return roster{nonce: rec.Nonce}, nil
		}
		return roster{}, fmt.Errorf("cassemaphore is %d, not %d", j.Format, version)
	}
	r := roster{token: j.Token, written: j.Written, nonce: j.Write, lastReleased: j.Released}
	for _, e := range j.Holders {
		switch {
		case e.Holder == "" || r.index(e.Holder) >= 0:
			return roster{}, errors.New("a holder without a name of its own")
		case e.Permits < 1:
			return roster{}, fmt.Errorf("a holder of %d permits", e.Permits)
		case e.Lease < 0 || e.Lease > longest.Milliseconds():
			return roster{}, fmt.Errorf("lease_ms is %d", e.Lease)
		}
		r.holders = append(r.holders, holder{
			acquisition: e.Holder, identity: string(e.By), permits: e.Permits, token: e.Token, renewals: e.Renewals,
			lease: time.Duration(e.Lease) * time.Millisecond, since: e.Since,
		})
	}
	return r, nil
}

// millis returns d in milliseconds, rounded up.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

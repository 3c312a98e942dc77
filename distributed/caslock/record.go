package caslock

import (
	"encoding/json"
	"fmt"
	"time"
)

// Record is the content of a lock's document.
type Record struct {
	// Holder is the acquisition that has the lock. It is empty if the lock is free. No two
	// acquisitions have the same name.
	Holder string
	// Identity describes the process of the holder to people, see [driver.Inspector].
	Identity string
	// Lease is for how long the holder has the lock without a renewal.
	Lease time.Duration
	// Token is the fencing token of the holder. A free lock keeps the token of its last holder.
	Token uint64
	// Since is when the holder acquired the lock, by its clock. It is for people.
	Since time.Time
	// Written is when the document was written, by the clock of the writer. It is for people, and
	// for [Client.Sweep], which deletes no document without it.
	Written time.Time
	// Nonce is a text that no other write has.
	Nonce string
	// Released is the acquisition that was released last, or empty if that acquisition is
	// unknown. If a repeated release finds the lock free, Released shows the client that the
	// first request was carried out.
	Released string
}

// Format is how documents write a [Record]. A store that has its own fields for the contents of a
// Record has its own Format, see [WithFormat]. Then other programs that use these fields exclude
// the locks here, if they follow the rules that the documentation of the package has.
//
// Decode of data that Encode returned yields the same Holder, Token and Nonce. The Lease is the
// same or longer, such as in whole seconds. The other fields may get lost. Two Records with
// different Nonces have different data. A free lock has Lease 0, and a lock that was never held
// may have Token 0.
type Format interface {
	// Encode returns the document. An error says that the store cannot have such a document.
	Encode(r Record) ([]byte, error)
	// Decode returns the content of a document. An error says that the document does not belong
	// to a lock: the lock's methods return the error with [locks.ErrForeign]. They also return
	// [locks.ErrForeign] for a holder without a lease.
	Decode(data []byte) (Record, error)
}

// JSON is the default [Format]:
//
//	{"caslock": 1, "token": 7, "holder": "0193...:17", "lease_ms": 30000, "by": {"label": "web-1"},
//	 "since": "2027-01-31T12:00:00Z", "written": "2027-01-31T12:00:10Z", "write": "GX5T...",
//	 "released": "0193...:16"}
//
// The document of a free lock lacks holder, lease_ms, by and since. Early versions of this
// package ignore the field released, and leave it out.
var JSON Format = jsonFormat{}

type jsonFormat struct{}

// version is the version of the format.
const version = 1

type jsonRecord struct {
	Format   int             `json:"caslock"`
	Token    uint64          `json:"token"`
	Holder   string          `json:"holder,omitempty"`
	Lease    int64           `json:"lease_ms,omitempty"`
	By       json.RawMessage `json:"by,omitempty"`
	Since    time.Time       `json:"since,omitzero"`
	Written  time.Time       `json:"written,omitzero"`
	Write    string          `json:"write"`
	Released string          `json:"released,omitempty"`
}

func (jsonFormat) Encode(r Record) ([]byte, error) {
	j := jsonRecord{
		Format: version, Token: r.Token, Holder: r.Holder, Since: r.Since, Written: r.Written, Write: r.Nonce,
		Lease: millis(r.Lease), Released: r.Released,
	}
	if json.Valid([]byte(r.Identity)) {
		j.By = json.RawMessage(r.Identity)
	}
	return json.Marshal(j)
}

func (jsonFormat) Decode(data []byte) (Record, error) {
	var j jsonRecord
	err := json.Unmarshal(data, &j)
	switch {
	case err != nil:
		return Record{}, err
	case j.Format != version:
		return Record{}, fmt.Errorf("caslock is %d, not %d", j.Format, version)
	case j.Lease < 0 || j.Lease > longest.Milliseconds():
		return Record{}, fmt.Errorf("lease_ms is %d", j.Lease)
	}
	return Record{
		Holder: j.Holder, Identity: string(j.By), Lease: time.Duration(j.Lease) * time.Millisecond,
		Token: j.Token, Since: j.Since, Written: j.Written, Nonce: j.Write, Released: j.Released,
	}, nil
}

package consullock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// fake is an agent in memory. Clients reach it without connections, so that tests can have a clock
// of their own. Its sessions do not end by themselves.
type fake struct {
	mu       sync.Mutex
	index    uint64                 // of the last change
	changed  chan struct{}          // closed at the next change
	pairs    map[string]*api.KVPair // by key
	sessions map[string]bool
}

func newFake() *fake {
	return &fake{
		index: 1, changed: make(chan struct{}), pairs: make(map[string]*api.KVPair), sessions: make(map[string]bool),
	}
}

// change says that something has changed. The caller has f.mu.
func (f *fake) change() {
	f.index++
	close(f.changed)
	f.changed = make(chan struct{})
}

// writes reports whether r changes something. It can still be sent.
func (f *fake) writes(r *http.Request) bool {
	if r.Method != http.MethodPut || r.URL.Path != "/v1/txn" {
		return r.Method == http.MethodPut
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return strings.Count(string(text), `"Verb"`) != strings.Count(string(text), `"Verb":"check-index"`)
}

func answered(status int, body any, index uint64) *http.Response {
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"X-Consul-Index": {fmt.Sprint(index)}, "X-Consul-Knownleader": {"true"}, "X-Consul-Lastcontact": {"0"},
		},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}
}

// RoundTrip answers a request.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	key, isKey := strings.CutPrefix(r.URL.Path, "/v1/kv/")
	session := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if r.Method == http.MethodGet {
		if err := f.await(r); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case isKey && f.pairs[key] == nil:
		return answered(http.StatusNotFound, "", f.index), nil
	case isKey:
		return answered(http.StatusOK, api.KVPairs{f.pairs[key]}, f.index), nil
	case r.URL.Path == "/v1/txn":
		return f.transact(r)
	case r.URL.Path == "/v1/session/create":
		f.change()
		id := fmt.Sprint("s", f.index)
		f.sessions[id] = true
		return answered(http.StatusOK, map[string]string{"ID": id}, f.index), nil
	case strings.HasPrefix(r.URL.Path, "/v1/session/renew/") && !f.sessions[session]:
		return answered(http.StatusNotFound, "Session id not found", f.index), nil
	case strings.HasPrefix(r.URL.Path, "/v1/session/destroy/"):
		delete(f.sessions, session)
		f.change()
	}
	if f.sessions[session] {
		return answered(http.StatusOK, []*api.SessionEntry{{ID: session}}, f.index), nil
	}
	return answered(http.StatusOK, "[]", f.index), nil
}

// await waits until something has changed since the index that r names, or until the wait time of r
// is over.
func (f *fake) await(r *http.Request) error {
	index, _ := strconv.ParseUint(r.URL.Query().Get("index"), 10, 64)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		f.mu.Lock()
		old, changed := index >= f.index, f.changed
		f.mu.Unlock()
		if !old {
			return r.Context().Err()
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// transact carries out all operations of a transaction, or none of them.
func (f *fake) transact(r *http.Request) (*http.Response, error) {
	var ops api.TxnOps
	if err := json.NewDecoder(r.Body).Decode(&ops); err != nil {
		return nil, err
	}
	var out api.TxnResponse
	inside := make(map[string]*api.KVPair) // as in Consul, an operation sees the changes of the operations before it
	for i, op := range ops {
		now, text := f.pairs[op.KV.Key], ""
		if p := inside[op.KV.Key]; p != nil {
			now = p
		}
		if now == nil {
			now = &api.KVPair{Key: op.KV.Key}
		}
		next := *now
		switch {
		case op.KV.Verb == api.KVCheckIndex && now.ModifyIndex != op.KV.Index:
			text = "failed index check for key "
		case op.KV.Verb == api.KVCheckIndex:
			out.Results = append(out.Results, &api.TxnResult{KV: now})
			continue
		case op.KV.Verb == api.KVCAS && now.ModifyIndex != op.KV.Index:
			text = "failed to set key "
		case op.KV.Verb == api.KVLock && !f.sessions[op.KV.Session]:
			text = "invalid session "
		case op.KV.Verb == api.KVLock && now.Session != "":
			text = "failed to lock key "
		case op.KV.Verb == api.KVUnlock && now.Session != op.KV.Session:
			text = "failed to unlock key "
		case op.KV.Verb == api.KVLock:
			next.Session = op.KV.Session
		case op.KV.Verb == api.KVUnlock:
			next.Session = ""
		}
		if text != "" {
			out.Errors = append(out.Errors, &api.TxnError{OpIndex: i, What: text + op.KV.Key})
			continue
		}
		next.Value, next.Flags, next.ModifyIndex = op.KV.Value, op.KV.Flags, f.index+1
		inside[op.KV.Key] = &next
		out.Results = append(out.Results, &api.TxnResult{KV: &next})
	}
	if out.Errors != nil {
		out.Results = nil
		return answered(http.StatusConflict, out, f.index), nil
	}
	for i, result := range out.Results {
		if ops[i].KV.Verb != api.KVCheckIndex {
			f.pairs[result.KV.Key] = result.KV
			f.change()
		}
	}
	return answered(http.StatusOK, out, f.index), nil
}

package caslock_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/caslock"
)

// server is a store of documents in memory, also over HTTP. The version of a document is a hash of
// its data, so that equal documents have equal versions.
type server struct {
	mu      sync.Mutex
	docs    map[string]string // data by name
	changed chan struct{}     // is closed and replaced with each change
	loads   int
	swaps   int

	every  time.Duration // between two times when the server stores its documents, or 0
	last   time.Time     // when it stored them last
	stored map[string]string
}

func newServer() *server { return &server{docs: make(map[string]string), changed: make(chan struct{})} }

func versionOf(data string) string { return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(data)))[:20] }

// version returns the version of the document, or "" without a document. s.mu is held.
func (s *server) version(name string) string {
	if data, ok := s.docs[name]; ok {
		return versionOf(data)
	}
	return ""
}

func (s *server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) Load(_ context.Context, name string) ([]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	return []byte(s.docs[name]), s.version(name), nil
}

func (s *server) Swap(_ context.Context, name string, data []byte, version string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swaps++
	if s.every > 0 && time.Since(s.last) >= s.every {
		s.store()
	}
	if s.version(name) != version {
		return "", caslock.ErrConflict
	}
	s.docs[name] = string(data)
	s.notify()
	return versionOf(string(data)), nil
}

// storing has the server store its documents at each interval. The returned function restarts the
// server with the stored documents.
func (s *server) storing(every time.Duration) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.every = every
	s.store()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if time.Since(s.last) < s.every { // else each change was stored
			s.docs = s.stored
			s.store()
			s.notify()
		}
	}
}

// store keeps the documents as they are now. s.mu is held.
func (s *server) store() { s.stored, s.last = maps.Clone(s.docs), time.Now() }

// put writes as another program.
func (s *server) put(name, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.docs[name] = data
	s.notify()
}

// remove has another program delete.
func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.docs, name)
	s.notify()
}

func (s *server) data(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.docs[name]
}

// requests returns how many loads and swaps there were since the last call.
func (s *server) requests() (loads, swaps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	loads, swaps = s.loads, s.swaps
	s.loads, s.swaps = 0, 0
	return loads, swaps
}

// wait returns when the document has another version than before, or when ctx ends.
func (s *server) wait(ctx context.Context, name, before string) {
	for {
		s.mu.Lock()
		version, changed := s.version(name), s.changed
		s.mu.Unlock()
		if version != before {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ServeHTTP has Load and Swap as GET and PUT. A GET with If-None-Match waits for a change.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	name, _ = url.PathUnescape(name)
	if r.Method == http.MethodPut {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return // a request of which a part is lost
		}
		version, err := s.Swap(r.Context(), name, data, r.Header.Get("If-Match"))
		if err != nil {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		w.Header().Set("ETag", version)
		return
	}
	if before, ok := r.Header["If-None-Match"]; ok {
		s.wait(r.Context(), name, before[0])
	}
	data, version, _ := s.Load(r.Context(), name)
	w.Header().Set("ETag", version)
	if version == "" {
		w.WriteHeader(http.StatusNotFound)
	}
	w.Write(data)
}

// watchedRows are rows whose server tells of changes.
type watchedRows struct{ *rows }

func (r watchedRows) Watch(ctx context.Context, name string, changed func()) error {
	_, version, err := r.Load(ctx, name)
	for err == nil {
		changed()
		var resp *http.Response
		if resp, err = r.send(ctx, http.MethodGet, name, http.Header{"If-None-Match": {version}}, nil); err == nil {
			version = resp.Header.Get("ETag")
			err = resp.Body.Close()
		}
	}
	return err
}

// fault is a fault of one Swap.
type fault string

const (
	lostRequest fault = "the request is lost"
	lostReply   fault = "the reply is lost"
	late        fault = "the request comes when deliver is called"
	twice       fault = "the library sends it twice"
)

var errNetwork = errors.New("network down")

// conn is a connection to a server in memory that can fail.
type conn struct {
	*server
	mu      sync.Mutex
	faults  []fault // of the next swaps
	late    []func() error
	loadErr error // of all loads
	swapErr error // of all swaps
}

func (s *server) connect(faults ...fault) *conn { return &conn{server: s, faults: faults} }

func (c *conn) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *conn) Load(ctx context.Context, name string) ([]byte, string, error) {
	c.mu.Lock()
	err := c.loadErr
	c.mu.Unlock()
	if err != nil {
		return nil, "", err
	}
	return c.server.Load(ctx, name)
}

func (c *conn) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.swapErr != nil {
		return "", c.swapErr
	}
	var f fault
	if len(c.faults) > 0 {
		f, c.faults = c.faults[0], c.faults[1:]
	}
	send := func() (string, error) { return c.server.Swap(ctx, name, data, version) }
	switch f {
	case lostRequest:
		return "", errNetwork
	case lostReply:
		send()
		return "", errNetwork
	case late:
		c.late = append(c.late, func() error { _, err := send(); return err })
		return "", errNetwork
	case twice:
		send()
	}
	return send()
}

// deliver brings the late swaps to the server, and returns what it answers.
func (c *conn) deliver() (errs []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, send := range c.late {
		errs = append(errs, send())
	}
	c.late = nil
	return errs
}

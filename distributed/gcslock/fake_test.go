package gcslock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// fake is a bucket in memory that talks as Google does. Clients reach it without connections, so
// that tests can have a clock of their own.
type fake struct {
	mu       sync.Mutex
	objects  map[string]object // by name
	last     int               // the last generation
	requests map[string]int    // by method
	// before, if not nil, may change a request, or answer it.
	before func(r *http.Request) (*http.Response, error)
	// after, if not nil, may change what came of a request.
	after func(r *http.Request, answer *http.Response) (*http.Response, error)
}

type object struct {
	data       string
	generation int
}

func newFake() *fake { return &fake{objects: make(map[string]object), requests: make(map[string]int)} }

func (f *fake) client() *http.Client { return &http.Client{Transport: f} }

// RoundTrip answers a request.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil { // a connection ended: half of an object is none
			return nil, err
		}
		r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.requests[r.Method]++
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if answer, err := before(r); answer != nil || err != nil {
			return answer, err
		}
	}
	answer := f.answer(r, string(body))
	if after != nil {
		return after(r, answer)
	}
	return answer, nil
}

// serve answers the requests of a connection.
func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		answer, err := f.RoundTrip(r)
		if err != nil || answer.Write(conn) != nil {
			return
		}
	}
}

func (f *fake) answer(r *http.Request, body string) *http.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	query := r.URL.Query()
	name := query.Get("name")
	if _, key, ok := strings.Cut(r.URL.EscapedPath(), "/o/"); ok {
		name, _ = url.PathUnescape(key)
	}
	o, there := f.objects[name]
	if wanted := query.Get("ifGenerationMatch"); wanted != "" && wanted != strconv.Itoa(o.generation) {
		return refusal(http.StatusPreconditionFailed, "conditionNotMet")
	}
	switch r.Method {
	case http.MethodPost:
		f.last++
		f.objects[name] = object{body, f.last}
		return answered(http.StatusOK, fmt.Sprintf(`{"name": %q, "generation": "%d"}`, name, f.last))
	case http.MethodDelete:
		delete(f.objects, name)
		return answered(http.StatusNoContent, "")
	case http.MethodGet:
		if there {
			answer := answered(http.StatusOK, o.data)
			answer.Header.Set("X-Goog-Generation", strconv.Itoa(o.generation))
			return answer
		}
		return answered(http.StatusNotFound, "No such object: "+name)
	}
	return refusal(http.StatusMethodNotAllowed, "httpMethodNotAllowed")
}

func answered(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: make(http.Header), ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// refusal is an answer with an error.
func refusal(status int, reason string) *http.Response {
	return answered(status, fmt.Sprintf(`{"error": {"code": %d, "message": "because", "errors": [{"reason": %q}]}}`,
		status, reason))
}

// counts returns the reads, writes and deletions since the last call.
func (f *fake) counts() (reads, writes, deletions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.requests
	f.requests = make(map[string]int)
	return n[http.MethodGet], n[http.MethodPost], n[http.MethodDelete]
}

// set changes the fake while clients use it.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// has returns the number of objects.
func (f *fake) has() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.objects)
}

var errNetwork = errors.New("network down")

// bubble runs a test on a fake, with a clock that goes on when all wait.
func bubble(t *testing.T, test func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFake()) })
}

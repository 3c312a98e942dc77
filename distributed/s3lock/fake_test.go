package s3lock_test

import (
	"bufio"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// fake is a bucket in memory that talks as S3 does. Clients reach it without connections, so that
// tests can have a clock of their own.
type fake struct {
	mu       sync.Mutex
	objects  map[string]string // by key
	requests map[string]int    // by method
	// before, if not nil, may change a request, or answer it.
	before func(r *http.Request) (*http.Response, error)
	// after, if not nil, may change what came of a request.
	after func(r *http.Request, answer *http.Response) (*http.Response, error)
}

func newFake() *fake { return &fake{objects: make(map[string]string), requests: make(map[string]int)} }

func (f *fake) client() *s3.Client { return clientOf(f, "fake") }

func etagOf(data string) string { return fmt.Sprintf(`"%x"`, md5.Sum([]byte(data))) }

// Do answers a request.
func (f *fake) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil { // a connection ended: half of an object is none
			return nil, err
		}
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
		answer, err := f.Do(r)
		if err != nil || answer.Write(conn) != nil {
			return
		}
	}
}

func (f *fake) answer(r *http.Request, body string) *http.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/"+bucketName+"/")
	data, there := f.objects[key]
	switch match := r.Header.Get("If-Match"); {
	case match != "" && !there:
		return refusal(http.StatusNotFound, "NoSuchKey")
	case match != "" && match != etagOf(data), r.Header.Get("If-None-Match") == "*" && there:
		return refusal(http.StatusPreconditionFailed, "PreconditionFailed")
	}
	switch r.Method {
	case http.MethodPut:
		f.objects[key] = body
		return answered(http.StatusOK, "", etagOf(body))
	case http.MethodDelete:
		delete(f.objects, key)
		return answered(http.StatusNoContent, "", "")
	case http.MethodGet:
		if there {
			return answered(http.StatusOK, data, etagOf(data))
		}
		return refusal(http.StatusNotFound, "NoSuchKey")
	}
	return refusal(http.StatusMethodNotAllowed, "MethodNotAllowed")
}

func answered(status int, body, etag string) *http.Response {
	h := make(http.Header)
	if etag != "" {
		h.Set("ETag", etag)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: h, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// refusal is an answer with an error.
func refusal(status int, code string) *http.Response {
	return answered(status, "<Error><Code>"+code+"</Code><Message>because</Message></Error>", "")
}

// counts returns the reads, writes and deletions since the last call.
func (f *fake) counts() (reads, writes, deletions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.requests
	f.requests = make(map[string]int)
	return n[http.MethodGet], n[http.MethodPut], n[http.MethodDelete]
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

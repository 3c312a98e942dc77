package adaptertest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// ErrNetwork is the error of a request or an answer that a [Fake] loses.
var ErrNetwork = errors.New("network down")

// Fake is a server in memory that talks HTTP. Clients reach it without connections, so that tests
// can have a clock of their own.
type Fake struct {
	// Write is the method of requests that write.
	Write string
	// Reply answers a request with this body. It is called with the Fake locked.
	Reply func(r *http.Request, body string) *http.Response
	// Before, if not nil, may change a request, or answer it.
	Before func(r *http.Request) (*http.Response, error)
	// After, if not nil, may change the outcome of a request.
	After func(r *http.Request, answer *http.Response) (*http.Response, error)

	mu       sync.Mutex
	requests map[string]int // by method
}

// RoundTrip answers a request.
func (f *Fake) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil { // a connection ended
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	if f.requests == nil {
		f.requests = make(map[string]int)
	}
	f.requests[r.Method]++
	before, after := f.Before, f.After
	f.mu.Unlock()
	if before != nil {
		if answer, err := before(r); answer != nil || err != nil {
			return answer, err
		}
	}
	f.mu.Lock()
	answer := f.Reply(r, string(body))
	f.mu.Unlock()
	if after != nil {
		return after(r, answer)
	}
	return answer, nil
}

// Serve answers the requests of a connection.
func (f *Fake) Serve(conn net.Conn) { Serve(conn, f) }

// Serve answers the requests of a connection by rt.
func Serve(conn net.Conn, rt http.RoundTripper) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		answer, err := rt.RoundTrip(r)
		if err != nil || answer.Write(conn) != nil {
			return
		}
	}
}

// Counts returns the reads, writes and deletions since the last call.
func (f *Fake) Counts() (reads, writes, deletions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.requests
	f.requests = nil
	return n[http.MethodGet], n[f.Write], n[http.MethodDelete]
}

// Set changes the Fake, or the data of Reply, while clients use it.
func (f *Fake) Set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// hang leaves all requests without an answer until their contexts end, or ends that.
func (f *Fake) hang(hangs bool) {
	f.Set(func() {
		f.Before = nil
		if hangs {
			f.Before = func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
		}
	})
}

// loseReply makes the nth write from now succeed without an answer. lost reports whether that write
// has come.
func (f *Fake) loseReply(nth int) (lost func() bool) {
	n := 0
	f.Set(func() {
		f.After = func(r *http.Request, answer *http.Response) (answered *http.Response, err error) {
			answered = answer
			f.Set(func() {
				if r.Method != f.Write {
					return
				}
				if n++; n == nth {
					answered, err = nil, ErrNetwork
				}
			})
			return answered, err
		}
	})
	return func() (came bool) {
		f.Set(func() { came = n >= nth })
		return came
	}
}

// Answered returns an answer with a body.
func Answered(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: make(http.Header), ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

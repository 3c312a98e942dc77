package dynamolock_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
)

// front is between a client and its server. It counts requests, and may answer them.
type front struct {
	transport *http.Transport

	mu     sync.Mutex
	counts map[string]int    // by operation
	bodies map[string]string // the last one
	answer func(op string, pass func() *http.Response) *http.Response
}

// dialFront returns a client of the server at addr with a front.
func dialFront(tb testing.TB, addr string) (*dynamodb.Client, *front) {
	f := newFront()
	f.transport = &http.Transport{}
	tb.Cleanup(f.transport.CloseIdleConnections)
	return dynamodb.New(options(addr, f)), f
}

func newFront() *front { return &front{counts: make(map[string]int), bodies: make(map[string]string)} }

func (f *front) RoundTrip(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	f.bodies[op] = string(body)
	f.counts[op]++
	answer := f.answer
	f.mu.Unlock()
	if answer == nil {
		return f.transport.RoundTrip(r)
	}
	var failed error
	resp := answer(op, func() (resp *http.Response) {
		resp, failed = f.transport.RoundTrip(r)
		return resp
	})
	return resp, failed
}

// answers sets what answers from now on, instead of the server.
func (f *front) answers(answer func(op string, pass func() *http.Response) *http.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// refuses makes the front refuse the next n requests of an operation. It returns a channel that is
// closed when a later request has come to the server.
func (f *front) refuses(op string, n int, status int, code string) (passed chan struct{}) {
	passed = make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	f.answers(func(got string, pass func() *http.Response) *http.Response {
		if got != op {
			return pass()
		}
		mu.Lock()
		n--
		refuse := n >= 0
		mu.Unlock()
		if refuse {
			return refusal(status, code)
		}
		defer once.Do(func() { close(passed) })
		return pass()
	})
	return passed
}

// requests returns how many requests of an operation there were since the last call.
func (f *front) requests(ops ...string) (counts []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, op := range ops {
		counts = append(counts, f.counts[op])
	}
	clear(f.counts)
	return counts
}

// refusal is an answer of DynamoDB with a code, or one of a proxy without a code.
func refusal(status int, code string) *http.Response {
	body := "<html>a proxy says no</html>"
	if code != "" {
		body = `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"no"}`
	}
	return reply(status, body)
}

func reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"}, "Date": {time.Now().UTC().Format(http.TimeFormat)},
		},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// soon waits for c to be closed.
func soon(tb testing.TB, c <-chan struct{}, what string) {
	tb.Helper()
	select {
	case <-c:
	case <-time.After(long):
		require.Fail(tb, "it does not happen", what)
	}
}

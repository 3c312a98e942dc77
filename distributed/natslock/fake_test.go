package natslock_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// fake is a server in memory with the bucket "locks". Clients reach it without a network, so that
// tests can have a clock of their own. It permits no consumers: waiters poll.
type fake struct {
	mu         sync.Mutex
	last       uint64 // revision
	keys       map[string]value
	absent     bool // the bucket was deleted
	remade     int  // how often the bucket was made anew
	limits     bool // keys expire
	leaderless bool // no server answers for the bucket
	writes     int
	reads      int
}

// set changes f.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// wait begins to wait for l, and returns when its client has read the key twice.
func (f *fake) wait(tb testing.TB, l locks.Locker, ctx context.Context) <-chan error {
	tb.Helper()
	var before int
	f.set(func() { before = f.reads })
	got := adaptertest.Start(l, ctx)
	require.Eventually(tb, func() (waits bool) {
		f.set(func() { waits = f.reads >= before+2 })
		return waits
	}, long, time.Millisecond)
	return got
}

// sent returns how many writes have come.
func (f *fake) sent() (n int) {
	f.set(func() { n = f.writes })
	return n
}

// limit is a part of the settings.
func (f *fake) limit() string {
	if f.limits {
		return `, "max_age": 3600000000000`
	}
	return ""
}

// remake deletes the bucket, and makes it anew.
func (f *fake) remake() {
	f.keys, f.last = make(map[string]value), 0
	f.remade++
}

// expire makes a server delete a key because of its age.
func (f *fake) expire(key string) {
	f.last++
	f.keys[key] = value{revision: f.last, header: "NATS/1.0\r\n" + jetstream.MarkerReasonHeader + ": MaxAge\r\n\r\n"}
}

type value struct {
	header   string
	data     string
	revision uint64
}

func newFake() *fake { return &fake{keys: make(map[string]value)} }

// way is a client's way to a fake, in a mood.
type way struct {
	adaptertest.Moody
	f       *fake
	answer  string        // the code of a row of the table
	timeout time.Duration // of requests, or 0 for the default
	servers string        // or empty for one

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Dial is part of [nats.CustomDialer].
func (w *way) Dial(string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go w.serve(server)
	return client, nil
}

// Set sets the mood. An error of the connection ends it.
func (w *way) Set(m adaptertest.Mood) {
	w.Moody.Set(m)
	if w.refusesConnections() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for c := range w.conns {
			c.Close()
		}
	}
}

func (w *way) refusesConnections() bool {
	_, refused := w.Now(true)
	return refused && strings.HasPrefix(w.answer, "nats: ")
}

// connect returns a connection to f that is closed with the test.
func (w *way) connect(tb testing.TB, opts ...nats.Option) jetstream.JetStream {
	tb.Helper()
	conn, err := nats.Connect(cmp.Or(w.servers, "nats://127.0.0.1:4222"), append([]nats.Option{
		nats.SetCustomDialer(w), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(0, 0),
		nats.IgnoreAuthErrorAbort(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	var limits []jetstream.JetStreamOpt
	if w.timeout > 0 {
		limits = append(limits, jetstream.WithDefaultTimeout(w.timeout))
	}
	js, err := jetstream.New(conn, limits...)
	require.NoError(tb, err)
	return js
}

// serve speaks the protocol of a server with one client.
func (w *way) serve(conn net.Conn) {
	w.mu.Lock()
	if w.conns == nil {
		w.conns = make(map[net.Conn]bool)
	}
	w.conns[conn] = true
	w.mu.Unlock()
	lines := make(chan string, 1000)
	go func() { // a client may write while it is written to
		for line := range lines {
			if _, err := io.WriteString(conn, line); err != nil {
				break
			}
		}
		conn.Close()
		for range lines {
		}
	}()
	defer close(lines)
	lines <- `INFO {"server_id":"fake","version":"2.15.2","proto":1,"headers":true,"max_payload":1048576}` + "\r\n"
	sids := make(map[string]string) // by subject, without the star at its end
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		part := strings.Fields(line)
		switch part[0] {
		case "PING": // the first one comes with the login
			if w.refusesConnections() {
				lines <- fmt.Sprintf("-ERR '%s'\r\n", protocolError[w.answer])
				return
			}
			lines <- "PONG\r\n"
		case "SUB":
			sids[strings.TrimSuffix(part[1], "*")] = part[len(part)-1]
		case "PUB", "HPUB":
			size, err := strconv.Atoi(part[len(part)-1])
			if err != nil {
				return
			}
			body := make([]byte, size+2)
			if _, err := io.ReadFull(in, body); err != nil {
				return
			}
			header := 0
			if part[0] == "HPUB" {
				header, _ = strconv.Atoi(part[len(part)-2])
			}
			reply := part[2]
			sid := sids[reply[:strings.LastIndexByte(reply, '.')+1]] + sids[reply]
			answer := w.request(part[1], string(body[:header]), string(body[header:size]))
			switch answer {
			case silence:
				continue
			case "":
				const none = "NATS/1.0 503\r\n\r\n"
				lines <- fmt.Sprintf("HMSG %s %s %d %d\r\n%s\r\n", reply, sid, len(none), len(none), none)
				continue
			}
			lines <- fmt.Sprintf("MSG %s %s %d\r\n%s\r\n", reply, sid, len(answer), answer)
		}
	}
}

// protocolError is the text that a server sends before it ends a connection.
var protocolError = map[string]string{
	"nats: authorization violation":                     "Authorization Violation",
	"nats: authentication expired":                      "User Authentication Expired",
	"nats: authentication revoked":                      "User Authentication Revoked",
	"nats: account authentication expired":              "Account Authentication Expired",
	"nats: maximum connections exceeded":                "maximum connections exceeded",
	"nats: maximum account active connections exceeded": "maximum account active connections exceeded",
}

// silence is in the place of an answer that never comes.
const silence = "silence"

// request answers a message in the mood of the way. An empty answer is that nobody is interested.
func (w *way) request(subject, header, data string) string {
	carriedOut, refused := w.Now(strings.HasPrefix(subject, "$KV."))
	answer := ""
	if carriedOut {
		answer = w.f.request(subject, header, data)
	}
	if !refused {
		return answer
	}
	head, text, _ := strings.Cut(w.answer, ": ")
	status, code, _ := strings.Cut(strings.ReplaceAll(head, "xx", "77"), " ")
	if code == "" {
		code = "1"
	}
	return problem(status, code, "because "+text)
}

func problem(status, code, text string) string {
	return fmt.Sprintf(`{"error": {"code": %s, "err_code": %s, "description": %q}}`, status, code, text)
}

func (f *fake) request(subject, header, data string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, isKey := strings.CutPrefix(subject, "$KV.locks.")
	if isKey {
		f.writes++
	}
	switch {
	case f.leaderless && isKey:
		return ""
	case f.leaderless:
		return silence
	case subject == "$JS.API.STREAM.INFO.KV_locks" && f.absent, subject == "$JS.API.STREAM.MSG.GET.KV_locks" && f.absent:
		return problem("404", "10059", "stream not found")
	case subject == "$JS.API.STREAM.INFO.KV_locks":
		return `{"config": {"name": "KV_locks", "subjects": ["$KV.locks.>"], "max_msgs_per_subject": 1,
			"storage": "file", "retention": "limits"` + f.limit() + `},
			"created": "2027-01-31T12:00:0` + fmt.Sprint(f.remade) + `Z"}`
	case subject == "$JS.API.STREAM.MSG.GET.KV_locks":
		f.reads++
		var in struct {
			Last string `json:"last_by_subj"`
		}
		if err := json.Unmarshal([]byte(data), &in); err != nil {
			panic(err)
		}
		v, ok := f.keys[strings.TrimPrefix(in.Last, "$KV.locks.")]
		if !ok {
			return problem("404", "10037", "no message found")
		}
		text, err := json.Marshal(map[string]any{
			"message": map[string]any{"seq": v.revision, "data": []byte(v.data), "hdrs": []byte(v.header)},
		})
		if err != nil {
			panic(err)
		}
		return string(text)
	case isKey && !f.absent:
		_, after, _ := strings.Cut(header, jetstream.ExpectedLastSubjSeqHeader+": ")
		expected, _, _ := strings.Cut(after, "\r\n")
		if expected != fmt.Sprint(f.keys[key].revision) {
			return problem("400", "10071", "wrong last sequence")
		}
		f.last++
		f.keys[key] = value{data: data, revision: f.last}
		return fmt.Sprintf(`{"stream": "KV_locks", "seq": %d}`, f.last)
	case strings.HasPrefix(subject, "$JS.API.CONSUMER."):
		return problem("400", "10026", "maximum consumers limit reached")
	}
	return ""
}

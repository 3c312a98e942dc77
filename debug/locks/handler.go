package locksdebug

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/record"
)

// Option adds something to the answers of a [Handler].
type Option func(*handler)

// WithRecorder adds the holds and waits of r. It may be given several times. The Recorder shows
// waits only with [record.Options.Waits]. The answer needs Unwrap of wrapped locks that wait, and
// Err of the holds of leased locks, which may be code of the program. If one of them panics, or has
// not returned after two seconds, the answer lacks the counts of r, and has a line that says so.
func WithRecorder(r *record.Recorder) Option {
	return func(h *handler) {
		if r == nil {
			panic("locksdebug: WithRecorder: nil Recorder")
		}
		h.recorders = append(h.recorders, recorder{r, make(chan struct{}, 1)})
	}
}

// WithInspector adds the answer of l.Inspect under a name. It may be given several times. A lock
// on a store asks the store at each request, for two seconds at most, all such locks at a time.
// If an Inspect panics, or has not returned by then, the answer has a line that says so. Later
// requests ask this lock again once its Inspect has returned. Handler panics if l is nil, or a nil
// pointer.
func WithInspector(name string, l locks.Inspector) Option {
	return func(h *handler) {
		if ctxerr.IsNil(l) {
			panic("locksdebug: WithInspector: nil lock")
		}
		h.watched = append(h.watched, watched{name, l, make(chan struct{}, 1)})
	}
}

type watched struct {
	name   string
	lock   locks.Inspector
	asking chan struct{} // has a value while Inspect runs
}

const (
	// answerTimeout bounds the wait for methods of a watched lock, or of the locks of a Recorder.
	answerTimeout = 2 * time.Second
	// answerGrace is the time in which an Inspect returns that heeds its context.
	answerGrace = 250 * time.Millisecond
)

type recorder struct {
	*record.Recorder
	asking chan struct{} // has a value while methods of its locks run
}

type handler struct {
	recorders []recorder
	watched   []watched
	turn      chan struct{} // has a value while a snapshot is taken
}

// Handler returns a handler that shows the locks of this process. The package comment describes the
// page, and says why it must not be public.
//
// The query sets the format: ?format=html, text or json. Without it the Accept header decides
// between the three, and any other client gets text. The page refreshes itself every five
// seconds, or as ?refresh=1s says, and not with ?refresh=0. A number without a unit means seconds.
// The page refreshes itself less often if its answers stop the program for more than 1 % of that
// time. With ?name=TEXT the answer has only locks with TEXT in their names, and all cycles and
// orphans. The handler answers GET and HEAD.
func Handler(opts ...Option) http.Handler {
	syncq.TimeWaits()
	h := &handler{turn: make(chan struct{}, 1)}
	for _, o := range opts {
		o(h)
	}
	return h
}

var held = sync.OnceValue(func() *pprof.Profile { return pprof.NewProfile("locks.held") })

// HeldProfile returns the profile locks.held for [record.Options.Held]. The first call makes it
// known to [pprof.Lookup].
func HeldProfile() *pprof.Profile { return held() }

// formats are the formats of an answer with their types.
var formats = map[string]string{
	"html": "text/html; charset=utf-8",
	"text": "text/plain; charset=utf-8",
	"json": "application/json",
}

func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Security-Policy", policy)
	header.Set("Vary", "Accept")
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "locksdebug: only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		return
	}
	format, err := formatOf(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	refresh, err := refreshOf(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, err := h.snapshot(req.Context(), req.URL.Query().Get("name"))
	if err != nil {
		return // the client has gone
	}
	var body bytes.Buffer
	switch format {
	case "html":
		err = s.html(&body, refresh)
	case "json":
		err = s.json(&body)
	default:
		err = s.text(&body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", formats[format])
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	if req.Method == http.MethodGet {
		_, _ = w.Write(body.Bytes()) // an error is the client's
	}
}

// formatOf returns the format of the answer.
func formatOf(req *http.Request) (string, error) {
	if format := req.URL.Query().Get("format"); format != "" {
		if _, ok := formats[format]; !ok {
			return "", fmt.Errorf("locksdebug: unknown format %q, known are html, json and text", format)
		}
		return format, nil
	}
	for part := range strings.SplitSeq(strings.Join(req.Header.Values("Accept"), ","), ",") {
		media, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(media)) {
		case "text/html", "application/xhtml+xml":
			return "html", nil
		case "application/json":
			return "json", nil
		case "text/plain":
			return "text", nil
		}
	}
	return "text", nil
}

// Refresh times of the page.
const (
	defaultRefresh = 5 * time.Second
	minRefresh     = time.Second
)

// refreshOf returns after which time the page refreshes itself, or 0 for never.
func refreshOf(req *http.Request) (time.Duration, error) {
	text := req.URL.Query().Get("refresh")
	if text == "" {
		return defaultRefresh, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d != 0 && d < minRefresh {
		return 0, fmt.Errorf("locksdebug: refresh %q, it must be 0 or a duration of at least %v", text, minRefresh)
	}
	return d, nil
}

// snapshot takes a snapshot when no other request does. It returns an error if ctx ends first.
func (h *handler) snapshot(ctx context.Context, name string) (*snapshot, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return h.take(ctx, name), nil
}

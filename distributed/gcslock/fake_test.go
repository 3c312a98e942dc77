package gcslock_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// fake is a bucket in memory that talks as Google does.
type fake struct {
	adaptertest.Fake
	objects map[string]object // by name
	last    int               // the last generation
}

type object struct {
	data       string
	generation int
}

func newFake() *fake {
	f := &fake{objects: make(map[string]object)}
	f.Write, f.Reply = http.MethodPost, f.reply
	return f
}

func (f *fake) client() *http.Client { return &http.Client{Transport: f} }

func (f *fake) reply(r *http.Request, body string) *http.Response {
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
		return adaptertest.Answered(http.StatusOK, fmt.Sprintf(`{"name": %q, "generation": "%d"}`, name, f.last))
	case http.MethodDelete:
		delete(f.objects, name)
		return adaptertest.Answered(http.StatusNoContent, "")
	case http.MethodGet:
		if there {
			answer := adaptertest.Answered(http.StatusOK, o.data)
			answer.Header.Set("X-Goog-Generation", strconv.Itoa(o.generation))
			return answer
		}
		return adaptertest.Answered(http.StatusNotFound, "No such object: "+name)
	}
	return refusal(http.StatusMethodNotAllowed, "httpMethodNotAllowed")
}

// refusal is an answer with an error.
func refusal(status int, reason string) *http.Response {
	return adaptertest.Answered(status, fmt.Sprintf(`{"error": {"code": %d, "message": "because", "errors": [{"reason": %q}]}}`,
		status, reason))
}

// has returns the number of objects.
func (f *fake) has() (n int) {
	f.Set(func() { n = len(f.objects) })
	return n
}

// bubble runs a test on a fake, with a clock that goes on when all wait.
func bubble(t *testing.T, test func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFake()) })
}

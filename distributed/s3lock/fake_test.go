package s3lock_test

import (
	"crypto/md5"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// fake is a bucket in memory that talks as S3 does.
type fake struct {
	adaptertest.Fake
	objects map[string]string // by key
}

func newFake() *fake {
	f := &fake{objects: make(map[string]string)}
	f.Write, f.Reply = http.MethodPut, f.reply
	return f
}

func (f *fake) client() *s3.Client { return clientOf(f, "fake") }

func etagOf(data string) string { return fmt.Sprintf(`"%x"`, md5.Sum([]byte(data))) }

// Do answers a request.
func (f *fake) Do(r *http.Request) (*http.Response, error) { return f.RoundTrip(r) }

func (f *fake) reply(r *http.Request, body string) *http.Response {
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
	answer := adaptertest.Answered(status, body)
	if etag != "" {
		answer.Header.Set("ETag", etag)
	}
	return answer
}

// refusal is an answer with an error.
func refusal(status int, code string) *http.Response {
	return answered(status, "<Error><Code>"+code+"</Code><Message>because</Message></Error>", "")
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

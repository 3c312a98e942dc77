package gcslock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

const (
	// maxPage is more bytes than a page of a thousand names has.
	maxPage = 16 << 20
	// patience is for how long a request waits for its answer.
	patience = 10 * time.Second
)

// request is a request to the JSON API of Google.
type request struct {
	method, path string
	query        url.Values
	data         []byte
	limit        int64  // of the answer, in bytes; maxPage if 0
	right        string // that it needs
}

// answer is the answer to a request that has succeeded.
type answer struct {
	header http.Header
	body   []byte
}

// send sends a request once. The marks of its errors say whether the outcome is known.
func (d *documents) send(ctx context.Context, r request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address := d.endpoint + r.path + "?" + r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.data))
	if err != nil {
		return nil, driver.Mark(err, driver.ErrRefused)
	}
	if r.data != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, d.noAnswerError(r, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, cmp.Or(r.limit, maxPage)))
	switch {
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent:
		return nil, d.answerError(r, refusalOf(resp.StatusCode, body))
	case err != nil:
		return nil, d.noAnswerError(r, err)
	}
	return &answer{resp.Header, body}, nil
}

// noAnswerError returns the error of a request without an answer. If a connection was made, a write
// may have been carried out, or may be later.
func (d *documents) noAnswerError(r request, err error) error {
	return classes.NoAnswer(fmt.Errorf("bucket %q: %w", d.bucket, err), r.method == http.MethodGet)
}

// refusal is an answer that reports no success.
type refusal struct {
	status          int
	reason, message string
}

func (e *refusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s: %s", e.status, cmp.Or(e.reason, http.StatusText(e.status)), e.message))
}

// refusalOf reads an answer. The body is JSON, except for reads of objects, where the body is the
// message.
func refusalOf(status int, body []byte) *refusal {
	var answer struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	e := &refusal{status: status}
	if err := json.Unmarshal(body, &answer); err == nil {
		e.message = answer.Error.Message
		for _, reason := range answer.Error.Errors {
			e.reason = reason.Reason
		}
	} else if utf8.Valid(body) && len(body) < maxKey && !bytes.ContainsRune(body, '<') { // no page for people
		e.message = string(body)
	}
	return e
}

// isStored reports whether err says that an object has another generation, or changes now.
func isStored(err error) bool {
	var e *refusal
	return errors.As(err, &e) && e.class() == classes.Stored
}

// statusOf returns the status of a refusal, or 0.
func statusOf(err error) int {
	var e *refusal
	if errors.As(err, &e) {
		return e.status
	}
	return 0
}

var errNoBucket = errors.New("the bucket does not exist: create it, by gcloud storage buckets create")

// answerError returns the error of a request that has an answer.
func (d *documents) answerError(r request, e *refusal) error {
	var err error = e
	class := e.class()
	switch {
	case e.status == http.StatusNotFound && // of a request that names no object, or by Google's words
		(strings.HasSuffix(r.path, "/o") || strings.HasPrefix(e.message, "The specified bucket does not exist")):
		err = fmt.Errorf("%w: %w", errNoBucket, err)
	case e.status == http.StatusForbidden && (e.reason == "" || e.reason == "forbidden"):
		err = fmt.Errorf("the right %s is missing: %w", r.right, err)
	case class == classes.Connection:
		err = fmt.Errorf("the login of the client is not accepted: %w", err)
	}
	return class.Mark(fmt.Errorf("bucket %q: %w", d.bucket, err))
}

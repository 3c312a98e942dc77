package natslock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// A document is the last value of a key:
//
//	method   request
//	Load     STREAM.MSG.GET, which only the leader of the stream answers
//	Swap     a message to the key's subject, with the expected last sequence of this subject
//	Delete   the same, with the operation DEL
//	Watch    a consumer of the subject
//	Names    a consumer of all subjects
//
// The version is the revision: the sequence of the message in the stream. It grows from message to
// message of all keys, and never comes again. A deleted key keeps a message that says so, and its
// revision is the version of a document of a free lock.

const (
	// resends is how often a read is sent before its time is over.
	resends = 5
	// reconnect is the pause between looks at the state of the connection.
	reconnect = 10 * time.Millisecond
)

// operation is the header of a message that deletes a key.
const operation = "KV-Operation"

// unheld is the document of a deleted key.
var unheld, _ = caslock.JSON.Encode(caslock.Record{})

// documents are the keys of a bucket.
type documents struct {
	js      jetstream.JetStream
	nc      *nats.Conn
	kv      jetstream.KeyValue
	stream  string
	keys    string    // what the subjects of keys begin with in the stream
	prefix  string    // of the requests to JetStream
	write   string    // what stands in front of keys in writes, if not the default prefix is used
	created time.Time // when the bucket was made
	timeout time.Duration

	highest atomic.Uint64 // the highest revision that was seen
	anew    atomic.Bool   // the bucket is not the one that was made at created
}

var (
	_ caslock.Documents   = (*documents)(nil)
	_ caslock.Watcher     = (*documents)(nil)
	_ caslock.Lister      = (*documents)(nil)
	_ caslock.Deleter     = (*documents)(nil)
	_ caslock.NameChecker = (*documents)(nil)
)

// message is the answer to STREAM.MSG.GET.
type message struct {
	Error   *jetstream.APIError `json:"error"`
	Message *struct {
		Sequence uint64 `json:"seq"`
		Header   []byte `json:"hdrs"`
		Data     []byte `json:"data"`
	} `json:"message"`
}

// Load asks the leader of the stream. A Get of the library asks any replica, which may lag behind.
func (d *documents) Load(ctx context.Context, name string) ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	request, err := json.Marshal(map[string]string{"last_by_subj": d.keys + keyOf(name)})
	if err != nil {
		return nil, "", err
	}
	answer, err := d.ask(ctx, d.prefix+"STREAM.MSG.GET."+d.stream, request)
	if err != nil {
		return nil, "", err
	}
	var m message
	if err := json.Unmarshal(answer.Data, &m); err != nil {
		return nil, "", err
	}
	switch {
	case m.Error != nil && m.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, "", nil
	case m.Error != nil:
		return nil, "", answerError(m.Error)
	case m.Message == nil:
		return nil, "", jetstream.ErrInvalidJetStreamResponse
	}
	d.saw(m.Message.Sequence)
	data, version := m.Message.Data, strconv.FormatUint(m.Message.Sequence, 10)
	if len(m.Message.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(m.Message.Header)
		if err != nil {
			return nil, "", err
		}
		marker := h.Get(jetstream.MarkerReasonHeader) != ""
		if marker { // the server has deleted the key, and its token, because of a setting
			if err := d.same(ctx); err != nil {
				return nil, "", err
			}
		}
		if marker || h.Get(operation) != "" {
			data = unheld
		}
	}
	return data, version, nil
}

// ask sends a request that changes nothing, again and again until it gets an answer. No server
// answers while the stream is without a leader.
func (d *documents) ask(ctx context.Context, subject string, request []byte) (*nats.Msg, error) {
	before := d.nc.LastError()
	var why error // there is no connection
	for {
		attempt, cancel := context.WithTimeout(ctx, d.timeout/resends)
		answer, err := d.nc.RequestWithContext(attempt, subject, request)
		cancel()
		if err == nil {
			return answer, nil
		}
		if refused := d.refusal(before, subject); refused != nil {
			return nil, driver.Mark(refused, driver.ErrRefused)
		}
		passing := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
			errors.Is(err, nats.ErrDisconnected)
		if !passing {
			return nil, d.unsentError(err)
		}
		why = d.disconnectError(why)
		if ctx.Err() != nil || !adapter.Sleep(ctx, reconnect) {
			return nil, d.silence(ctx, err, why)
		}
	}
}

// silence is the error of a read without an answer. why is the result of [documents.disconnected].
func (d *documents) silence(ctx context.Context, err, why error) error {
	if !d.nc.IsConnected() {
		return away(fmt.Errorf("%w: %w", nats.ErrDisconnected, ctx.Err()), why)
	}
	return driver.Mark(fmt.Errorf("no leader of the stream %s answers: %w", d.stream, err), driver.ErrUnavailable)
}

// disconnectError returns why a server accepts no connection: the latest reason, or before.
func (d *documents) disconnectError(before error) error {
	if d.nc.IsConnected() {
		return nil
	}
	last := d.nc.LastError()
	if c, ok := connectionClass(last); ok && (c == classes.Connection || c == classes.Moment) {
		return last
	}
	return before
}

// away returns the error of a request that was not sent for want of a connection, and why.
func away(err, why error) error {
	if c, ok := connectionClass(why); ok {
		return c.Mark(fmt.Errorf("%w: %w", err, why))
	}
	return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
}

// unsentError returns the error of a request that the library has not sent.
func (d *documents) unsentError(err error) error {
	c, ok := connectionClass(err)
	if !ok {
		return err
	}
	if last := d.nc.LastError(); d.nc.IsClosed() && last != nil && !errors.Is(err, last) {
		err = fmt.Errorf("%w: %w", err, last)
		if c, ok := connectionClass(last); ok && c == classes.Connection {
			err = fmt.Errorf("%w: see nats.IgnoreAuthErrorAbort for logins that are replaced", err)
		}
	}
	return c.Mark(err)
}

// refusal returns the server's refusal of a message to the subject, if a refusal came after before.
// A server does not answer such a message, but reports an error on the connection.
func (d *documents) refusal(before error, subject string) error {
	err := d.nc.LastError()
	if err != before && errors.Is(err, nats.ErrPermissionViolation) &&
		strings.Contains(err.Error(), `"`+subject+`"`) {
		return err
	}
	return nil
}

// Swap writes the document if the key has this revision.
func (d *documents) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if version == "" {
		looked, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		if err := d.same(looked); err != nil {
			return "", err
		}
	}
	return d.publish(ctx, &nats.Msg{Subject: d.write + d.keys + keyOf(name), Data: data}, version)
}

// Delete marks the key as deleted, if it has this revision.
func (d *documents) Delete(ctx context.Context, name, version string) error {
	_, err := d.publish(ctx, &nats.Msg{
		Subject: d.write + d.keys + keyOf(name), Header: nats.Header{operation: {"DEL"}},
	}, version)
	return err
}

// saw notes a revision that the bucket has given.
func (d *documents) saw(revision uint64) {
	for before := d.highest.Load(); before < revision; before = d.highest.Load() {
		if d.highest.CompareAndSwap(before, revision) {
			return
		}
	}
}

// publish sends m until a leader of the stream has received it. m does not need a Nats-Msg-Id, by
// which a server finds duplicates: a second message would find another revision.
func (d *documents) publish(ctx context.Context, m *nats.Msg, version string) (string, error) {
	var revision uint64 // 0: there is no message
	if version != "" {
		var err error
		if revision, err = strconv.ParseUint(version, 10, 64); err != nil {
			return "", driver.Mark(err, driver.ErrRefused)
		}
	}
	if d.anew.Load() {
		return "", anewError()
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	before, highest := d.nc.LastError(), d.highest.Load()
	var ack *jetstream.PubAck
	var err error
	gone := d.watchDeletion(ctx)
	for {
		if err := d.awaitConnection(ctx); err != nil {
			return "", err
		}
		ack, err = d.send(ctx, m, revision)
		// If no server has a use for the message, the stream is without a leader, or is gone.
		if !errors.Is(err, jetstream.ErrNoStreamResponse) {
			break
		}
		if err := gone(); err != nil {
			return "", err
		}
		if !adapter.Sleep(ctx, reconnect) {
			break
		}
	}
	if err == nil {
		d.saw(ack.Sequence)
		// A bucket gives a revision again only if a power cut has taken its last writes.
		if ack.Sequence <= highest {
			if err := d.same(ctx); errors.Is(err, errAnew) {
				return "", err
			}
		}
		return strconv.FormatUint(ack.Sequence, 10), nil
	}
	var answer *jetstream.APIError
	refused := d.refusal(before, m.Subject)
	switch {
	case errors.As(err, &answer):
		return "", d.explain(ctx, answerError(answer))
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return "", driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
	case refused != nil:
		return "", driver.Mark(refused, driver.ErrRefused)
	case !errors.Is(err, nats.ErrConnectionClosed): // the connection may have been closed after the message
		err = d.unsentError(err)
	}
	return "", fmt.Errorf("no answer to a write: %w", err)
}

// explain returns err, or why the bucket refuses each write, if err refuses the request.
func (d *documents) explain(ctx context.Context, err error) error {
	if !errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrUnavailable) || errors.Is(err, classes.ErrGone) {
		return err
	}
	if why := d.same(ctx); why != nil && errors.Is(why, driver.ErrRefused) && !errors.Is(why, driver.ErrUnavailable) {
		return driver.Mark(fmt.Errorf("%w: %w", err, why), driver.ErrRefused)
	}
	return err
}

// watchDeletion returns a function that asks, at its first call, whether the stream was deleted. It
// returns an error matching [classes.ErrGone] once a server has answered so. It does not wait for
// the answer: no server answers while the stream is without a leader.
func (d *documents) watchDeletion(ctx context.Context) func() error {
	var answers chan error
	return func() error {
		if answers == nil {
			answers = make(chan error, 1)
			go func() {
				_, err := d.js.Stream(ctx, d.stream)
				answers <- err
			}()
		}
		select {
		case err := <-answers:
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return deletedError(err)
			}
		default:
		}
		return nil
	}
}

// awaitConnection waits for a connection. Without one, the library would keep a message for later.
func (d *documents) awaitConnection(ctx context.Context) error {
	var why error
	for !d.nc.IsConnected() {
		why = d.disconnectError(why)
		switch {
		case d.nc.IsClosed():
			return d.unsentError(nats.ErrConnectionClosed)
		case !adapter.Sleep(ctx, reconnect):
			return away(nats.ErrDisconnected, why)
		}
	}
	return nil
}

// send sends m once.
func (d *documents) send(ctx context.Context, m *nats.Msg, revision uint64) (*jetstream.PubAck, error) {
	return d.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(d.stream),
		jetstream.WithExpectLastSequencePerSubject(revision))
}

// answerError returns the error of a server's answer.
func answerError(answer *jetstream.APIError) error {
	class := classOf(answer)
	switch {
	case class == classes.Stored:
		return fmt.Errorf("%w: %w", caslock.ErrConflict, answer)
	case answer.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return deletedError(answer)
	}
	return class.Mark(answer)
}

// deletedError returns the error of a request to a bucket that is not there, as err says.
func deletedError(err error) error {
	return driver.Mark(fmt.Errorf("the bucket was deleted: %w", err), driver.ErrRefused, classes.ErrGone)
}

var (
	errEnded  = errors.New("the server's notices have ended")
	errSilent = driver.Mark(errors.New("the server does not answer"), driver.ErrUnavailable)
)

// Watch makes the server notify of each message of the key.
func (d *documents) Watch(ctx context.Context, name string, changed func()) error {
	return d.follow(ctx, keyOf(name), changed, func(jetstream.KeyValueEntry) bool {
		changed()
		return true
	}, jetstream.UpdatesOnly())
}

// Names returns the names of the keys that are not deleted. A server may be silent for the timeout
// between two keys at most.
func (d *documents) Names(ctx context.Context) ([]string, error) {
	var names []string
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(d.timeout, cancel)
	defer limit.Stop()
	heard := func() { limit.Reset(d.timeout) }
	err := d.follow(ctx, jetstream.AllKeys, heard, func(e jetstream.KeyValueEntry) bool {
		if e == nil { // there are no more
			return false
		}
		heard()
		if name, ok := nameOf(e.Key()); ok {
			names = append(names, name)
		}
		return true
	}, jetstream.IgnoreDeletes())
	if err != nil && ctx.Err() != nil && caller.Err() == nil {
		err = errSilent
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// follow calls on when the server begins to notify, and each for each notified key, until ctx ends
// or each returns false.
func (d *documents) follow(ctx context.Context, keys string, on func(), each func(e jetstream.KeyValueEntry) bool,
	opts ...jetstream.WatchOpt) error {
	caller := ctx
	ctx, cancel := context.WithCancel(ctx) // the library watches until ctx ends
	defer cancel()
	limit := time.AfterFunc(d.timeout, cancel) // of the first request
	w, err := d.kv.Watch(ctx, keys, append(opts, jetstream.MetaOnly())...)
	switch {
	case !limit.Stop() && caller.Err() == nil:
		return errSilent
	case err != nil:
		return err
	}
	defer func() {
		w.Stop() // at once: the end of ctx does it later
		go func() {
			for range w.Updates() { // the library waits until it can tell of the next key
			}
		}()
	}()
	on()
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return adapter.Join(errEnded, ctx.Err())
			}
			if !each(e) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

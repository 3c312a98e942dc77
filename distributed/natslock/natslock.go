package natslock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// New returns a client of the locks in a key-value bucket, which is there already. It asks the
// server for the settings of the bucket, and returns an error if locks would not be safe in it. The
// client asks again before it makes a missing key of a lock, and refuses to make it in a bucket
// that is not the same or no longer safe. A holder learns with its next renewal that its bucket was
// deleted. Close the client before the connection of js.
//
// A request fails if it is not answered in the time of [jetstream.WithDefaultTimeout], 5 seconds if
// not given. Set a fifth of the lease for leases below 25 seconds.
//
// The options come from package caslock, such as [caslock.WithTTL] and [caslock.WithLabel].
func New(ctx context.Context, js jetstream.JetStream, bucket string, opts ...caslock.Option) (*caslock.Client, error) {
	if js == nil {
		return nil, errors.New("natslock: nil JetStream")
	}
	d, err := newDocuments(ctx, js, bucket)
	if err != nil {
		return nil, fmt.Errorf("natslock: bucket %q: %w", bucket, adapter.OfStore(ctx, err))
	}
	first := []caslock.Option{caslock.WithErrorPrefix("natslock"), placeOf(d)}
	return caslock.New(d, append(first, opts...)...)
}

// placeOf says where the locks of d are: the servers that its user has given, without their
// passwords, the prefix of JetStream, and the bucket.
func placeOf(d *documents) caslock.Option {
	var hosts []string
	for _, server := range d.nc.Opts.Servers {
		for part := range strings.SplitSeq(server, ",") {
			_, host, _ := strings.Cut(part, "://")
			if host == "" {
				host = part
			}
			hosts = append(hosts, host[strings.LastIndexByte(host, '@')+1:])
		}
	}
	slices.Sort(hosts)
	place := fmt.Sprintf("nats %s %s%s", strings.Join(hosts, ","), d.prefix, d.stream)
	return caslock.WithLeaseOptions(driver.WithPlace(place, ""))
}

func newDocuments(ctx context.Context, js jetstream.JetStream, bucket string) (*documents, error) {
	o := js.Options()
	d := &documents{
		js: js, nc: js.Conn(), timeout: o.DefaultTimeout,
		stream: "KV_" + bucket, keys: "$KV." + bucket + ".", prefix: jetstream.DefaultAPIPrefix,
	}
	switch {
	case o.Domain != "":
		d.prefix = "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		d.prefix = strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	if d.prefix != jetstream.DefaultAPIPrefix {
		d.write = d.prefix // as the KeyValue of the library does
	}
	look := func() error {
		ctx, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		kv, err := js.KeyValue(ctx, bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			return fmt.Errorf("create it, by CreateKeyValue or nats kv add: %w", err)
		}
		if err != nil {
			return err
		}
		d.kv = kv
		d.created, err = d.inspect(ctx)
		return err
	}
	err := look()
	for n := 1; n < resends && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; n++ {
		err = look() // a stream without a leader does not answer
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// inspect returns when the bucket was made. It returns an error if locks are not safe in it.
func (d *documents) inspect(ctx context.Context) (created time.Time, err error) {
	stream, err := d.js.Stream(ctx, d.stream)
	if err != nil {
		return time.Time{}, err
	}
	info := stream.CachedInfo()
	return info.Created, unfit(info.Config)
}

// same returns why no key may be made in the bucket now: it is not the bucket of [New], or locks
// are not safe in it any more. Keys that have vanished are the sign of both.
func (d *documents) same(ctx context.Context) error {
	created, err := d.inspect(ctx)
	var answer *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return deletedError(err)
	case errors.As(err, &answer):
		return answerError(answer)
	case err != nil && created.IsZero(): // no answer, and nothing was written
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable)
	case err != nil:
		return driver.Mark(fmt.Errorf("the bucket was changed: %w", err), driver.ErrRefused)
	case !created.Equal(d.created):
		d.anew.Store(true)
		return anewError()
	}
	return nil
}

// anewError returns the error of a request of which errAnew is the reason: what was held in the old
// bucket is lost.
func anewError() error { return driver.Mark(errAnew, driver.ErrRefused, classes.ErrGone) }

// errAnew is the error of a write to a bucket that is not the bucket which the client has opened.
var errAnew = errors.New("the bucket was deleted and made anew, and its tokens begin anew: " +
	"stop what compares tokens of the old one, then open a new client")

// unfit returns why locks would not be safe in a bucket, or nil.
func unfit(c jetstream.StreamConfig) error {
	var why []string
	refuse := func(unfit bool, reason string) {
		if unfit {
			why = append(why, reason)
		}
	}
	refuse(c.MaxAge > 0, "its keys expire (TTL), and with them holds and tokens")
	refuse(c.AllowMsgTTL, "single keys may expire (LimitMarkerTTL), and with them holds and tokens")
	refuse(c.MaxBytes > 0 || c.MaxMsgs > 0,
		"when it is full, it refuses renewals and releases, or discards keys (MaxBytes or MaxMsgs)")
	refuse(c.DiscardNewPerSubject, "it refuses to replace a key (DiscardNewPerSubject)")
	refuse(c.Retention != jetstream.LimitsPolicy, "it deletes what was read (Retention)")
	refuse(c.Storage != jetstream.FileStorage, "a restart of its servers empties it (memory storage)")
	refuse(c.PersistMode == jetstream.AsyncPersistMode,
		"it acknowledges what is not written yet (asynchronous persistence)")
	refuse(c.Mirror != nil, "it is a mirror of another bucket, which lags behind")
	refuse(len(c.Sources) > 0, "it has sources, which write keys without a comparison")
	refuse(c.SubjectTransform != nil, "it stores keys under other names (SubjectTransform)")
	refuse(c.NoAck, "it does not acknowledge writes (NoAck)")
	refuse(c.Sealed, "it is sealed, and refuses writes")
	if len(why) == 0 {
		return nil
	}
	return errors.New("locks are not safe in it: " + strings.Join(why, "; "))
}

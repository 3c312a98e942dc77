package s3lock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// DefaultPrefix is the beginning of all keys if [WithPrefix] is not given.
const DefaultPrefix = "locks/"

// Option changes how [New] makes a client.
type Option func(*options)

type options struct {
	prefix  string
	trusted bool
	cas     []caslock.Option
}

// WithTTL sets how long a hold lasts without a renewal, [lease.DefaultLease] if not given. See
// [caslock.WithTTL].
func WithTTL(d time.Duration) Option { return with(caslock.WithTTL(d)) }

// WithLabel sets the name of this process that Inspect returns, here and in other processes. See
// [caslock.WithLabel].
func WithLabel(label string) Option { return with(caslock.WithLabel(label)) }

// WithPolling sets the pauses between the reads of a waiter. See [caslock.WithPolling].
func WithPolling(first, most time.Duration) Option { return with(caslock.WithPolling(first, most)) }

// WithLeaseOptions sets the rarer options of package lease, such as [lease.WithLogger].
func WithLeaseOptions(opts ...lease.Option) Option { return with(caslock.WithLeaseOptions(opts...)) }

func with(opt caslock.Option) Option { return func(o *options) { o.cas = append(o.cas, opt) } }

// WithPrefix sets the beginning of all keys, [DefaultPrefix] if not given. It may be empty. Clients
// with different prefixes have different locks.
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// WithoutProbe trusts the store: the client writes without a [Probe] before. Use it only for a
// store that is known to keep its promise. Do not use it to save requests on an unknown store.
// [caslock.Client.Sweep] then trusts conditional deletions as well. A store that deletes without
// comparing the ETag may delete the object of a hold.
func WithoutProbe() Option { return func(o *options) { o.trusted = true } }

// New returns a client of the locks in a bucket. It sends no request. Before its first write, it
// asks the store as [Probe] does. If the store fails, all acquisitions return an error matching
// [ErrUnsafe].
//
// The options of client apply, except its retries and checksums: each request is sent once, and its
// signature covers the data.
func New(client *s3.Client, bucket string, opts ...Option) (*caslock.Client, error) {
	d, o, err := newDocuments(client, bucket, opts)
	if err != nil {
		return nil, fmt.Errorf("s3lock: %w", err)
	}
	return caslock.New(d, append(append([]caslock.Option{placeOf(d)}, o.cas...), caslock.WithErrorPrefix("s3lock"))...)
}

// placeOf says where the locks of d are.
func placeOf(d *documents) caslock.Option {
	o := d.client.Options()
	place := fmt.Sprintf("s3 %s %s %s", o.Region, adapter.HostOf(aws.ToString(o.BaseEndpoint)), d.bucket)
	return caslock.WithLeaseOptions(driver.WithPlace(place, d.prefix))
}

func newDocuments(client *s3.Client, bucket string, opts []Option) (*documents, options, error) {
	o := options{prefix: DefaultPrefix}
	for _, f := range opts {
		f(&o)
	}
	switch {
	case client == nil:
		return nil, o, errors.New("nil client")
	case bucket == "":
		return nil, o, errors.New("the name of the bucket is empty")
	case strings.HasSuffix(bucket, ".mrap"):
		return nil, o, fmt.Errorf("%q is an access point of several regions, whose buckets differ for a while", bucket)
	}
	d := &documents{client: client, bucket: bucket, prefix: o.prefix, turn: make(chan struct{}, 1)}
	if err := d.CheckName("x"); err != nil {
		return nil, o, fmt.Errorf("the prefix %q: %w", o.prefix, err)
	}
	d.trusted.Store(o.trusted)
	return d, o, nil
}

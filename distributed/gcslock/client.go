package gcslock

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

const (
	// DefaultPrefix is the beginning of the names of all objects if [WithPrefix] is not given.
	DefaultPrefix = "locks/"
	// DefaultEndpoint is Google's endpoint, which is used if [WithEndpoint] is not given.
	DefaultEndpoint = "https://storage.googleapis.com"
)

// Option changes how [New] makes a client.
type Option func(*options)

type options struct {
	prefix   string
	endpoint string
	cas      []caslock.Option
}

// WithTTL sets how long a hold lasts without a renewal, [lease.DefaultLease] if not given. Below 15
// seconds, renewals and hand-overs come close to Google's limit of a write a second. See
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

// WithPrefix sets the beginning of the names of all objects, [DefaultPrefix] if not given. The
// prefix may be empty. Clients with different prefixes have different locks.
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// WithEndpoint sets the URL of the server, [DefaultEndpoint] if not given: http or https, a host,
// and perhaps a port. It is for tests with a server in place of Google's.
func WithEndpoint(endpoint string) Option { return func(o *options) { o.endpoint = endpoint } }

// New returns a client of the locks in a bucket. It sends no request.
//
// The HTTP client adds the credentials, such as the client that DefaultClient of the package
// golang.org/x/oauth2/google returns. It stays the caller's. Each request is sent once, and no
// redirect is followed. A request ends after ten seconds, or earlier by the Timeout of the HTTP
// client. But package oauth2 fetches a token for as long as it takes. Give it an HTTP client with a
// Timeout, in the context of DefaultClient, by the key oauth2.HTTPClient.
func New(client *http.Client, bucket string, opts ...Option) (*caslock.Client, error) {
	o := options{prefix: DefaultPrefix, endpoint: DefaultEndpoint}
	for _, f := range opts {
		f(&o)
	}
	d, err := newDocuments(client, bucket, o)
	if err != nil {
		return nil, fmt.Errorf("gcslock: %w", err)
	}
	return caslock.New(d, append(append([]caslock.Option{placeOf(d)}, o.cas...), caslock.WithErrorPrefix("gcslock"))...)
}

// placeOf says where the locks of d are.
func placeOf(d *documents) caslock.Option {
	return caslock.WithLeaseOptions(driver.WithPlace("gcs "+adapter.HostOf(d.endpoint)+" "+d.bucket, d.prefix))
}

func newDocuments(client *http.Client, bucket string, o options) (*documents, error) {
	switch u, err := url.Parse(o.endpoint); {
	case client == nil:
		return nil, errors.New("nil client")
	case bucket == "":
		return nil, errors.New("the name of the bucket is empty")
	case strings.Contains(bucket, "/"):
		return nil, fmt.Errorf("the bucket %q: a name, without gs:// and folders, is wanted", bucket)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the endpoint must be a URL, such as " + DefaultEndpoint)
	}
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d := &documents{
		client: &once, endpoint: strings.TrimSuffix(o.endpoint, "/"),
		bucket: bucket, prefix: o.prefix,
	}
	if err := d.CheckName("x"); err != nil {
		return nil, fmt.Errorf("the prefix %q: %w", o.prefix, err)
	}
	return d, nil
}

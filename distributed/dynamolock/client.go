package dynamolock

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// DefaultKey is the attribute that is the partition key of the table if [WithKey] is not given.
const DefaultKey = "name"

// Option changes how [New] makes a client.
type Option func(*options)

type options struct {
	key    string
	prefix string
	cas    []caslock.Option
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

// WithKey sets the name of the attribute that is the table's partition key, [DefaultKey] if not
// given. Its type is string. The rows have two more attributes, "lock" and "version".
func WithKey(attribute string) Option { return func(o *options) { o.key = attribute } }

// WithPrefix sets the beginning of the key of each row, empty if not given. Clients with different
// prefixes have different locks. So programs can share a table, and rights can be limited to a
// prefix.
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// New returns a client of the locks in a table. It sends no request: [CheckTable] finds out what is
// wrong with a table. It never closes client.
//
// The options of client apply, except its retries: each request is sent once, since package lease
// knows which requests may be repeated.
func New(client *dynamodb.Client, table string, opts ...Option) (*caslock.Client, error) {
	d, cas, err := newDocuments(client, table, opts)
	if err != nil {
		return nil, fmt.Errorf("dynamolock: %w", err)
	}
	all := append([]caslock.Option{placeOf(d)}, cas...)
	return caslock.New(d, append(all, caslock.WithErrorPrefix("dynamolock"))...)
}

// placeOf says where the locks of d are.
func placeOf(d *documents) caslock.Option {
	o := d.client.Options()
	place := fmt.Sprintf("dynamodb %s %s %s", o.Region, adapter.HostOf(aws.ToString(o.BaseEndpoint)), d.table)
	return caslock.WithLeaseOptions(driver.WithPlace(place, d.prefix))
}

func newDocuments(client *dynamodb.Client, table string, opts []Option) (*documents, []caslock.Option, error) {
	o := options{key: DefaultKey}
	for _, f := range opts {
		f(&o)
	}
	d := &documents{client: client, table: table, key: o.key, prefix: o.prefix}
	switch {
	case client == nil:
		return nil, nil, errors.New("nil client")
	case table == "":
		return nil, nil, errors.New("the name of the table is empty")
	case o.key == "" || o.key == lockAttribute || o.key == versionAttribute:
		return nil, nil, fmt.Errorf("the partition key cannot be called %q", o.key)
	}
	if err := d.CheckName("x"); err != nil {
		return nil, nil, fmt.Errorf("the prefix: %w", err)
	}
	return d, o.cas, nil
}

// Package dynamodbopen registers dynamodb: with package open. Import it for its effect.
package dynamodbopen

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/open/driver"
)

// These are the defaults for a URL. The port belongs to a local server.
const (
	localPort     = "8000"
	defaultRegion = "us-east-1"
	defaultTable  = "locks"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "dynamodb", Port: localPort, Kinds: []string{"mutex"},
		Form: "dynamodb://REGION/TABLE or dynamodb://KEY:SECRET@HOST:PORT/TABLE",
		More: slices.Concat(driver.Leased(), driver.Certificate(),
			[]string{"prefix", "tls", "region", "partition_key", "create"}),
		Open: open,
	})
}

// regions are the names that Amazon gives to regions, such as us-gov-west-1.
var regions = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)

func open(ctx context.Context, o *driver.Opening) error {
	if (o.User == "") != (o.Password == "") {
		return driver.Reason("DynamoDB needs the id of a key and its secret, or neither")
	}
	create, err := o.OneOf("create", "false", "true")
	if err != nil {
		return err
	}
	table := cmp.Or(o.Path, defaultTable)
	at, err := locate(o, table)
	if err != nil {
		return err
	}
	client, err := connect(ctx, o, at)
	if err != nil {
		return o.Hide(err)
	}
	opts := []dynamolock.Option{
		dynamolock.WithKey(cmp.Or(o.Params["partition_key"], dynamolock.DefaultKey)),
		dynamolock.WithPrefix(o.Params["prefix"]), dynamolock.WithLeaseOptions(o.Lease...),
	}
	c, err := dynamolock.New(client, table, opts...)
	if err = o.Serve(c, err); err != nil {
		return err
	}
	if create == "true" {
		err = dynamolock.CreateTable(ctx, client, table, opts...)
	} else if err = dynamolock.CheckTable(ctx, client, table, opts...); classes.AmazonCode(err) == "AccessDeniedException" {
		_, err = c.Mutex("open").Inspect(ctx) // the least rights are enough to read a row
	}
	if err != nil {
		ours := errors.Is(err, dynamolock.ErrTable) || errors.Is(err, locks.ErrForeign)
		return o.Failed(err, ours || errors.As(err, new(smithy.APIError)))
	}
	return nil
}

// location is where the table is.
type location struct {
	region   string
	endpoint string // empty for that of the region
	secure   *tls.Config
}

// locate reads the host, which is a region of Amazon's or a server. A server may be called as a
// region is, such as shop-dynamodb-1. It has a port or keys in the URL.
func locate(o *driver.Opening, table string) (at location, err error) {
	host, _, err := net.SplitHostPort(o.Hosts[0])
	if err != nil {
		return at, driver.Reason("%w", err)
	}
	encrypt := "true"
	if regions.MatchString(host) && !o.HasPort && o.User == "" {
		if o.Params["region"] != "" || o.Params["tls"] != "" {
			return at, driver.Reason("the parameters region and tls are for a host that is no region")
		}
		at.region = host
		o.About = "dynamodb://" + host + "/" + table
	} else {
		at.region = cmp.Or(o.Params["region"], defaultRegion)
		if encrypt, err = o.OneOf("tls", "false", "true"); err != nil {
			return at, err
		}
		at.endpoint = map[string]string{"false": "http://", "true": "https://"}[encrypt] + o.Hosts[0]
	}
	at.secure, err = o.TLS(encrypt == "true")
	return at, err
}

// connect returns a client of the location, with the settings that all programs over Amazon's
// library have. The keys of the URL replace the keys of these settings.
func connect(ctx context.Context, o *driver.Opening, at location) (*dynamodb.Client, error) {
	load := []func(*config.LoadOptions) error{config.WithRegion(at.region), config.WithLogger(logging.Nop{})}
	if o.User != "" {
		load = append(load, config.WithCredentialsProvider(aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: o.User, SecretAccessKey: o.Password}, nil
			})))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if b, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		transport = b.GetTransport() // with AWS_CA_BUNDLE
	}
	if at.secure != nil {
		if bundle := transport.TLSClientConfig; bundle != nil && at.secure.RootCAs == nil {
			at.secure.RootCAs = bundle.RootCAs
		}
		transport.TLSClientConfig = at.secure
	}
	transport.DialContext = (&net.Dialer{Timeout: driver.DialTimeout}).DialContext
	o.OnEnd(transport.CloseIdleConnections)
	return dynamodb.NewFromConfig(cfg, func(d *dynamodb.Options) {
		d.HTTPClient = &http.Client{Transport: transport, CheckRedirect: stay}
		if at.endpoint != "" {
			d.BaseEndpoint = &at.endpoint
		}
	}), nil
}

// stay follows no redirect, which would send a write twice or as something else.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

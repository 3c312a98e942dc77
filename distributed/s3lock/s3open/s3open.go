// Package s3open registers s3: with package open. Import it for its effect.
package s3open

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/s3lock"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "s3", Form: "s3://ACCESSKEY:SECRET@BUCKET/PREFIX", Port: driver.NoPort,
		Kinds: []string{"mutex"},
		More:  slices.Concat(driver.Leased(), driver.Certificate(), []string{"endpoint", "probe", "region"}),
		Open:  open,
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	if (o.User == "") != (o.Password == "") {
		return driver.Reason("an access key and its secret need each other")
	}
	probe, err := o.OneOf("probe", "true", "false")
	if err != nil {
		return err
	}
	endpoint := o.Params["endpoint"]
	if u, err := url.Parse(endpoint); endpoint != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return driver.Reason("the parameter endpoint must be a URL, such as https://HOST:PORT")
	}
	certificates, err := o.TLS(!strings.HasPrefix(endpoint, "http:"))
	if err != nil {
		return err
	}
	client, err := connect(ctx, o, endpoint, certificates)
	if err != nil {
		return err
	}
	opts := []s3lock.Option{s3lock.WithLeaseOptions(o.Lease...)}
	prefix := s3lock.DefaultPrefix
	if o.Path != "" {
		prefix = strings.TrimSuffix(o.Path, "/") + "/"
		opts = append(opts, s3lock.WithPrefix(prefix))
	}
	if probe == "false" {
		opts = append(opts, s3lock.WithoutProbe())
	}
	c, err := s3lock.New(client, o.Hosts[0], opts...)
	if err = o.Serve(c, err); err != nil {
		return err
	}
	// New sends no request. This one shows that the bucket is there.
	_, err = client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &o.Hosts[0], Prefix: &prefix, MaxKeys: aws.Int32(1),
	})
	if err != nil {
		return openError(ctx, o, err)
	}
	return nil
}

// connect returns a client of S3. Settings that the URL lacks are in the environment and the files
// of the AWS CLI, or come from the machine on which the program runs.
func connect(ctx context.Context, o *driver.Opening, endpoint string, certificates *tls.Config) (*s3.Client, error) {
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = driver.DialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			if certificates != nil {
				t.TLSClientConfig = certificates
			}
		}))}
	if region := o.Params["region"]; region != "" {
		load = append(load, config.WithRegion(region))
	}
	if o.User != "" {
		load = append(load, config.WithCredentialsProvider(aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: o.User, SecretAccessKey: o.Password}, nil
			})))
	}
	settings, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, o.Hide(err)
	}
	// Loading may have added the certificates of AWS_CA_BUNDLE. This client follows no redirect
	// that would make a GET of a PUT.
	client := settings.HTTPClient.(*awshttp.BuildableClient).Freeze()
	o.OnEnd(client.(*http.Client).CloseIdleConnections)
	if endpoint != "" {
		settings.BaseEndpoint = &endpoint
		settings.Region = cmp.Or(settings.Region, "us-east-1") // what servers other than Amazon's expect
	}
	if settings.Region == "" {
		return nil, driver.Reason("the parameter region is missing, and so is AWS_REGION")
	}
	return s3.NewFromConfig(settings, func(options *s3.Options) {
		options.HTTPClient = client
		options.UsePathStyle = options.BaseEndpoint != nil // a server of one's own has no name for each bucket
	}), nil
}

// openError returns the error of a request under ctx.
func openError(ctx context.Context, o *driver.Opening, err error) error {
	if classes.AmazonCode(err) == "NoSuchBucket" {
		err = fmt.Errorf("the bucket does not exist: create it, by aws s3 mb: %w", err)
	}
	var unsent *smithyhttp.RequestSendError
	return o.Failed(err, ctx.Err() == nil && !errors.As(err, &unsent))
}

// Package natsopen registers nats: with package open. Import it for its effect.
package natsopen

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/natslock"
	"github.com/jucgo/locks/distributed/open/driver"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "nats", Form: "nats://USER:PASSWORD@HOST:PORT,HOST:PORT/BUCKET", Port: "4222", Many: true,
		Kinds: []string{"mutex"},
		More:  slices.Concat(driver.Leased(), driver.Certificate(), []string{"creds", "inbox", "replicas", "tls"}),
		Open:  open,
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	if o.Path == "" || strings.Contains(o.Path, "/") {
		return driver.Reason("its path must be the name of a bucket. The form is %s", o.Scheme.Form)
	}
	replicas, err := o.OneOf("replicas", "none", "1", "3", "5")
	if err != nil {
		return err
	}
	opts, err := options(o)
	if err != nil {
		return err
	}
	// nats.Connect takes no context. So ctx ends its connections until the store is open.
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	o.OnEnd(end)
	opts = append(opts, nats.SetCustomDialer(dialer{life}))
	conn, err := nats.Connect("nats://"+strings.Join(o.Hosts, ",nats://"), opts...)
	if err != nil {
		stop()
		return o.Failed(err, errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired))
	}
	o.OnEnd(conn.Close)
	answer := driver.DialTimeout
	if o.TTL > 0 {
		answer = min(max(o.TTL/5, time.Second), answer)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(answer))
	if err != nil {
		stop()
		return driver.Reason("%w", err)
	}
	c, err := bucket(ctx, o, js, replicas)
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
			errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionClosed)
		return o.Failed(err, !silent)
	}
	return o.Serve(c, nil)
}

// options returns the options of the connection. The connection goes on for ever, and notices soon
// that it has silently died.
func options(o *driver.Opening) ([]nats.Option, error) {
	if (o.User == "") != (o.Password == "") {
		return nil, driver.Reason("NATS needs a user and a password, or neither")
	}
	config, err := o.TLSByParameter()
	if err != nil {
		return nil, err
	}
	opts := []nats.Option{
		nats.Timeout(driver.DialTimeout), nats.PingInterval(driver.DialTimeout),
		nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the library prints them otherwise
	}
	if o.User != "" {
		opts = append(opts, nats.UserInfo(o.User, o.Password))
	}
	if config != nil {
		opts = append(opts, nats.Secure(config))
	}
	if file := o.Params["creds"]; file != "" {
		opts = append(opts, nats.UserCredentials(file))
	}
	if prefix := o.Params["inbox"]; prefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(prefix))
	}
	return opts, nil
}

// bucket returns the locks of the bucket. If the URL says how many replicas it has, a bucket that
// is missing is created.
func bucket(ctx context.Context, o *driver.Opening, js jetstream.JetStream, replicas string) (*caslock.Client, error) {
	opts := caslock.WithLeaseOptions(o.Lease...)
	c, err := natslock.New(ctx, js, o.Path, opts)
	switch {
	case !errors.Is(err, jetstream.ErrBucketNotFound):
		return c, err
	case replicas == "none":
		return nil, errors.New(err.Error() + ". The parameter replicas creates it")
	}
	config := jetstream.KeyValueConfig{Bucket: o.Path, Replicas: int(replicas[0] - '0')}
	if _, err := js.CreateKeyValue(ctx, config); err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return nil, err
	}
	return natslock.New(ctx, js, o.Path, opts)
}

// dialer makes connections that end with life.
type dialer struct{ life context.Context }

func (d dialer) Dial(network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: driver.DialTimeout}).DialContext(d.life, network, addr)
	if err != nil {
		return nil, err
	}
	return &ending{c, context.AfterFunc(d.life, func() { c.Close() })}, nil
}

// ending is a connection that no longer waits for the end of life once it is closed. The library
// compares connections, so it is a pointer.
type ending struct {
	net.Conn
	stop func() bool
}

func (e *ending) Close() error {
	e.stop()
	return e.Conn.Close()
}

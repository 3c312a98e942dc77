// Package etcdopen registers etcd: with package open. Import it for its effect.
package etcdopen

import (
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/open/driver"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "etcd", Form: "etcd://USER:PASSWORD@HOST:PORT,HOST:PORT", Port: "2379", Many: true,
		Kinds: []string{"mutex"},
		More:  slices.Concat(driver.Leased(), driver.Certificate(), []string{"prefix", "tls"}),
		Open:  open,
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	if o.Path != "" {
		return driver.Reason("it has a path. The parameter prefix sets what keys begin with")
	}
	if o.User == "" && o.Password != "" || o.User != "" && o.Password == "" {
		return driver.Reason("etcd needs a user and a password, or neither")
	}
	config, err := o.TLSByParameter()
	if err != nil {
		return err
	}
	// clientv3.New asks for a token of the user until the end of the client's context. So ctx ends
	// that as long as the store is being opened.
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	conn, err := clientv3.New(clientv3.Config{
		Endpoints: o.Hosts,
		Username:  o.User,
		Password:  o.Password,
		TLS:       config,
		Context:   life,
		// Keep-alive notices a connection that has silently died.
		DialTimeout:          driver.DialTimeout,
		DialKeepAliveTime:    driver.DialTimeout,
		DialKeepAliveTimeout: driver.DialTimeout,
		Logger:               zap.NewNop(),
		DialOptions:          etcdlock.DialOptions(),
	})
	if err != nil {
		stop()
		end()
		return openError(o, err)
	}
	o.OnEnd(func() {
		end()
		conn.Close() // its error is that life has ended
	})
	prefix := o.Params["prefix"]
	opts := []etcdlock.Option{etcdlock.WithPrefix(prefix), etcdlock.WithLeaseOptions(o.Lease...)}
	if o.TTL > 0 {
		opts = append(opts, etcdlock.WithTTL(o.TTL))
	}
	c, err := etcdlock.New(conn, opts...)
	if err = o.Serve(c, err); err != nil {
		stop()
		return err
	}
	// The connection is made when it is used.
	_, err = conn.Get(ctx, prefix+"/", clientv3.WithCountOnly())
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		return openError(o, err)
	}
	return nil
}

// openError returns the error of a request.
func openError(o *driver.Opening, err error) error {
	code := status.Code(err)
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) {
		code = answer.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition:
		return o.Hide(err)
	}
	return o.Unreachable(err)
}

package open

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks/distributed/etcdlock"
)

func openEtcd(ctx context.Context, o *opening) error {
	if o.path != "" {
		return reason("it has a path. The parameter prefix sets what keys begin with")
	}
	if o.user == "" && o.password != "" || o.user != "" && o.password == "" {
		return reason("etcd needs a user and a password, or neither")
	}
	encrypt, err := o.oneOf("tls", "false", "true")
	if err != nil {
		return err
	}
	config, err := o.tlsConfig(encrypt == "true")
	if err != nil {
		return err
	}
	// clientv3.New asks for a token of the user until the end of the client's context. So ctx ends
	// that as long as the store is being opened.
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	conn, err := clientv3.New(clientv3.Config{
		Endpoints: o.hosts,
		Username:  o.user,
		Password:  o.password,
		TLS:       config,
		Context:   life,
		// Keep-alive notices a connection that has silently died.
		DialTimeout: dialTimeout, DialKeepAliveTime: dialTimeout, DialKeepAliveTimeout: dialTimeout,
		Logger: zap.NewNop(),
		// By default, the second attempt to connect is made after a second, and later ones after up
		// to two minutes.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			},
			MinConnectTimeout: dialTimeout,
		})},
	})
	if err != nil {
		stop()
		end()
		return o.etcdError(err)
	}
	o.closeLast(func(context.Context) error {
		end()
		conn.Close() // its error is that life has ended
		return nil
	})
	prefix := o.params["prefix"]
	opts := []etcdlock.Option{etcdlock.WithPrefix(prefix)}
	if o.ttl > 0 {
		opts = append(opts, etcdlock.WithTTL(o.ttl))
	}
	if o.label != "" {
		opts = append(opts, etcdlock.WithLabel(o.label))
	}
	c, err := etcdlock.New(conn, append(opts, etcdlock.WithLeaseOptions(o.lease...))...)
	if err != nil {
		stop()
		return reason("%w", err)
	}
	o.closeLast(c.Close)
	// The connection is made when it is used.
	_, err = conn.Get(ctx, prefix+"/", clientv3.WithCountOnly())
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		return o.etcdError(err)
	}
	o.locker, o.names = c.Locker, c.Names
	return nil
}

// etcdError returns the error of a request.
func (o *opening) etcdError(err error) error {
	code := status.Code(err)
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) {
		code = answer.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition:
		return o.hide(err)
	}
	return o.unreachable(err)
}

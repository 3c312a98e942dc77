package open

import (
	"context"
	"crypto/tls"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/zklock"
)

func openZooKeeper(ctx context.Context, o *opening) error {
	encrypt, err := o.oneOf("tls", "false", "true")
	if err != nil {
		return err
	}
	config, err := o.tlsConfig(encrypt == "true")
	if err != nil {
		return err
	}
	opts := []zklock.Option{zklock.WithNamespace(o.path)}
	if config != nil {
		opts = append(opts, zklock.WithDialer((&tls.Dialer{Config: config}).DialContext))
	}
	if o.user != "" {
		opts = append(opts, zklock.WithAuth("digest", []byte(o.user+":"+o.password)))
	}
	if o.ttl > 0 {
		opts = append(opts, zklock.WithSessionTimeout(o.ttl))
	}
	if o.label != "" {
		opts = append(opts, zklock.WithLabel(o.label))
	}
	// The end of ctx ends the attempt. Any other error is one of options.
	c, err := zklock.New(ctx, o.hosts, append(opts, zklock.WithLeaseOptions(o.lease...))...)
	switch {
	case err != nil && ctx.Err() != nil:
		return o.unreachable(err)
	case err != nil:
		return reason("%w", o.hide(err))
	}
	o.closeLast(c.Close)
	o.locker, o.names = c.Locker, c.Names
	if o.kind() == "semaphore" {
		o.locker = func(name string) locks.TryLocker { return c.SemaphoreMutex(name) }
	}
	return nil
}

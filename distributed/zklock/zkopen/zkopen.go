// Package zkopen registers zk: with package open. Import it for its effect.
package zkopen

import (
	"context"
	"crypto/tls"
	"slices"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/zklock"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "zk", Form: "zk://USER:PASSWORD@HOST:PORT,HOST:PORT/NAMESPACE", Port: "2181", Many: true,
		Kinds: []string{"mutex", "semaphore"},
		More:  slices.Concat(driver.Leased(), driver.Certificate(), []string{"tls"}),
		Open:  open,
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	config, err := o.TLSByParameter()
	if err != nil {
		return err
	}
	opts := []zklock.Option{zklock.WithNamespace(o.Path)}
	if config != nil {
		opts = append(opts, zklock.WithDialer((&tls.Dialer{Config: config}).DialContext))
	}
	if o.User != "" {
		opts = append(opts, zklock.WithAuth("digest", []byte(o.User+":"+o.Password)))
	}
	if o.TTL > 0 {
		opts = append(opts, zklock.WithSessionTimeout(o.TTL))
	}
	// The end of ctx ends the attempt. Any other error is one of options.
	c, err := zklock.New(ctx, o.Hosts, append(opts, zklock.WithLeaseOptions(o.Lease...))...)
	switch {
	case err != nil && ctx.Err() != nil:
		return o.Unreachable(err)
	case err != nil:
		return driver.Reason("%w", o.Hide(err))
	}
	o.OnClose(c.Close)
	o.Locker, o.Names, o.Semaphore = c.Locker, c.Names, c.Semaphore
	if o.Kind() == "semaphore" {
		o.Locker = func(name string) locks.TryLocker { return c.SemaphoreMutex(name) }
	}
	return nil
}

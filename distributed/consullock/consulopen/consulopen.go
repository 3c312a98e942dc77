// Package consulopen registers consul: with package open. Import it for its effect.
package consulopen

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/open/driver"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "consul", Form: "consul://:TOKEN@HOST:PORT/PREFIX", Port: "8500",
		Kinds: []string{"mutex"},
		More:  slices.Concat(driver.Leased(), driver.Certificate(), []string{"lockdelay", "tls"}),
		Open:  open,
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	if o.User != "" {
		return driver.Reason("Consul has tokens and no users. The form is %s", o.Scheme.Form)
	}
	config, err := o.TLSByParameter()
	if err != nil {
		return err
	}
	opts := []consullock.Option{consullock.WithLeaseOptions(o.Lease...)}
	if o.TTL > 0 {
		opts = append(opts, consullock.WithTTL(o.TTL))
	}
	if text, ok := o.Params["lockdelay"]; ok {
		delay, err := driver.Duration(text)
		if err != nil {
			return driver.Reason("the parameter lockdelay must be a duration, such as 15s or 15")
		}
		opts = append(opts, consullock.WithLockDelay(delay))
	}
	if o.Path != "" {
		opts = append(opts, consullock.WithPrefix(strings.TrimSuffix(o.Path, "/")+"/"))
	}
	protocol := "http"
	if config != nil {
		protocol = "https"
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: driver.DialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: driver.DialTimeout,
		MaxIdleConnsPerHost: 16, // of many goroutines that ask at once
	}
	o.OnEnd(transport.CloseIdleConnections)
	// Settings that the URL lacks are in the environment: CONSUL_HTTP_TOKEN, CONSUL_NAMESPACE.
	client, err := api.NewClient(&api.Config{
		Address: o.Hosts[0], Scheme: protocol, Token: o.Password, HttpClient: &http.Client{Transport: transport},
	})
	if err != nil {
		return driver.Reason("%w", o.Hide(err))
	}
	c, err := consullock.New(client, opts...)
	if err = o.Serve(c, err); err != nil {
		return err
	}
	// New sends no request. This request shows that the agent answers, and the rights of the token.
	_, _, err = client.KV().Get(c.Key("open"), (&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		var answer api.StatusError
		return o.Failed(err, errors.As(err, &answer) && answer.Code < http.StatusInternalServerError)
	}
	return nil
}

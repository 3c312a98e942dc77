// Package gsopen registers gs: with package open. Import it for its effect.
package gsopen

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/open/driver"
)

var (
	// patience is for how long a request for a token waits for its answer.
	patience = 10 * time.Second
	// ping is after which silence a connection is tested. An answer may take half of that.
	ping = 10 * time.Second
)

func init() {
	driver.Register(driver.Scheme{
		Name: "gs", Form: "gs://BUCKET/PREFIX", Port: driver.NoPort,
		Kinds: []string{"mutex"},
		More:  slices.Concat(driver.Leased(), driver.Certificate(), []string{"endpoint"}),
		Open:  open,
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	if o.User != "" || o.Password != "" {
		return driver.Reason("it has no user: the credentials are those of the environment or of the machine")
	}
	endpoint := o.Params["endpoint"]
	if u, err := url.Parse(endpoint); endpoint != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return driver.Reason("the parameter endpoint must be a URL, such as https://HOST:PORT")
	}
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); endpoint == "" && host != "" {
		if endpoint = host; !strings.Contains(host, "://") {
			endpoint = "http://" + host
		}
	}
	client, err := connect(ctx, o, endpoint)
	if err != nil {
		return err
	}
	endpoint = cmp.Or(endpoint, gcslock.DefaultEndpoint)
	opts := []gcslock.Option{gcslock.WithEndpoint(endpoint), gcslock.WithLeaseOptions(o.Lease...)}
	if o.Path != "" {
		opts = append(opts, gcslock.WithPrefix(strings.TrimSuffix(o.Path, "/")+"/"))
	}
	c, err := gcslock.New(client, o.Hosts[0], opts...)
	if err = o.Serve(c, err); err != nil {
		return err
	}
	// New sends no request. This one shows that the bucket is there.
	if answered, err := list(ctx, client, endpoint, o.Hosts[0]); err != nil {
		return o.Failed(err, answered)
	}
	return nil
}

// connect returns a client with the credentials of the environment or of the machine. A server
// other than Google's gets none.
func connect(ctx context.Context, o *driver.Opening, endpoint string) (*http.Client, error) {
	certificates, err := o.TLS(!strings.HasPrefix(endpoint, "http:"))
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: driver.DialTimeout}).DialContext
	transport.TLSClientConfig = certificates
	// All requests share a connection. If it is dead, a renewal must find out before its hold ends.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: ping, PingTimeout: ping / 2}
	o.OnEnd(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	if endpoint == "" {
		// A request for a token ignores the contexts of the requests that wait for it.
		tokens := &http.Client{Transport: transport, Timeout: patience}
		lasting := context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, tokens)
		credentials, err := google.FindDefaultCredentials(lasting, "https://www.googleapis.com/auth/devstorage.read_write")
		if err != nil {
			return nil, o.Hide(err)
		}
		client = &http.Client{Transport: &oauth2.Transport{Source: credentials.TokenSource, Base: transport}}
	}
	// The server that a redirect names would get the credentials, too.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// list asks for the name of one object, and reports whether the server has answered.
func list(ctx context.Context, client *http.Client, endpoint, bucket string) (answered bool, err error) {
	objects := strings.TrimSuffix(endpoint, "/") + "/storage/v1/b/" + url.PathEscape(bucket) + "/o"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, objects+"?maxResults=1&fields=kind", nil)
	if err != nil {
		return true, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusNotFound:
		return true, errors.New("the bucket does not exist: create it, by gcloud storage buckets create")
	case http.StatusForbidden:
		return true, errors.New("the right storage.objects.list is missing")
	}
	return true, errors.New("the server answers " + resp.Status)
}

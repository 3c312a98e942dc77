package caslock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// rows are documents behind an HTTP server. The version is the ETag.
type rows struct {
	http http.RoundTripper // no Client: it follows redirects, and makes a GET of a PUT
	base string            // of the URLs, with a slash at the end
}

// Load reads the row. Without one, the server answers 404.
func (r *rows) Load(ctx context.Context, name string) (data []byte, version string, err error) {
	resp, err := r.send(ctx, http.MethodGet, name, nil, nil)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		data, err = io.ReadAll(io.LimitReader(resp.Body, caslock.MaxData+1))
		return data, resp.Header.Get("ETag"), err
	case http.StatusNotFound:
		return nil, "", nil
	}
	return nil, "", failed(resp)
}

// Swap writes the row if the condition holds that the server compares.
func (r *rows) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	condition := http.Header{"If-Match": {version}}
	if version == "" {
		condition = http.Header{"If-None-Match": {"*"}}
	}
	resp, err := r.send(ctx, http.MethodPut, name, condition, data)
	if err != nil {
		return "", err // perhaps it was carried out, or will be
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return resp.Header.Get("ETag"), nil
	case http.StatusPreconditionFailed:
		return "", caslock.ErrConflict
	}
	return "", failed(resp)
}

func (r *rows) send(ctx context.Context, method, name string, h http.Header, data []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+url.PathEscape(name), bytes.NewReader(data))
	if err != nil {
		return nil, driver.Mark(err, driver.ErrRefused)
	}
	if h != nil {
		req.Header = h
	}
	return r.http.RoundTrip(req)
}

// failed is the error of an answer. Only an answer that blames the request says that nothing was
// done. The answer of a server in trouble, a redirect, or another success does not say that.
func failed(resp *http.Response) error {
	err := fmt.Errorf("the server answers %s", resp.Status)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		return driver.Mark(err, driver.ErrUnavailable)
	case resp.StatusCode >= http.StatusBadRequest && resp.StatusCode < http.StatusInternalServerError:
		return driver.Mark(err, driver.ErrRefused)
	}
	return err
}

func ExampleDocuments() {
	server := httptest.NewServer(newServer()) // stands for yours
	defer server.Close()

	client, err := caslock.New(&rows{http.DefaultTransport, server.URL + "/"}, caslock.WithErrorPrefix("rows"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer client.Close(ctx)
	orders := client.Mutex("orders")
	err = locks.Do(ctx, orders, func(ctx context.Context) error {
		hold, err := orders.Hold(ctx)
		if err == nil {
			fmt.Println("held, token", hold.Token())
		}
		return err
	})
	fmt.Println(err)
	fmt.Println(orders.UnlockContext(ctx))
	// Output:
	// held, token 1
	// <nil>
	// rows: unlock "orders": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect
}

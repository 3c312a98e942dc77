package k8slock_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/internal/test/testbed"
)

const (
	namespace = "shop"
	long      = time.Minute // only a hang takes longer
)

var background = context.Background()

// config returns the configuration of a client of k.
func config(tb testing.TB, k *testbed.Kubernetes) *rest.Config {
	tb.Helper()
	c, err := clientcmd.RESTConfigFromKubeConfig(k.Kubeconfig(k.Addr()))
	require.NoError(tb, err)
	c.ContentType = "application/json" // a custom resource has no other form
	return c
}

// dial returns a client of its own, whose connections end with the test.
func dial(tb testing.TB, c *rest.Config) *coordinationv1client.CoordinationV1Client {
	tb.Helper()
	if c.Dial == nil { // clients with the same configuration share connections otherwise
		c.Dial = (&net.Dialer{}).DialContext
	}
	h, err := rest.HTTPClientFor(c)
	require.NoError(tb, err)
	tb.Cleanup(func() { utilnet.CloseIdleConnectionsFor(h.Transport) })
	client, err := coordinationv1client.NewForConfigAndClient(c, h)
	require.NoError(tb, err)
	return client
}

// connect returns a client of k as another process would have it.
func connect(tb testing.TB, k *testbed.Kubernetes) *coordinationv1client.CoordinationV1Client {
	tb.Helper()
	return dial(tb, config(tb, k))
}

// open returns a client of locks that is closed with the test.
func open(tb testing.TB, c coordinationv1client.CoordinationV1Interface, opts ...caslock.Option) *caslock.Client {
	tb.Helper()
	client, err := k8slock.New(c, namespace, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, long)
		defer cancel()
		require.NoError(tb, client.Close(ctx))
	})
	return client
}

// read returns the object, or nil.
func read(tb testing.TB, c coordinationv1client.LeasesGetter, name string) *coordinationv1.Lease {
	tb.Helper()
	found, err := c.Leases(namespace).Get(background, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(tb, err)
	return found
}

// create creates an object of another program.
func create(tb testing.TB, c coordinationv1client.LeasesGetter, name string, spec coordinationv1.LeaseSpec) {
	tb.Helper()
	_, err := c.Leases(namespace).Create(background, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	require.NoError(tb, err)
}

// counted has requests counted by their method.
type counted struct {
	http.RoundTripper
	gets, posts, patches atomic.Int64
}

// wrap is for a rest.Config.
func (c *counted) wrap(rt http.RoundTripper) http.RoundTripper {
	c.RoundTripper = rt
	return c
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet:
		c.gets.Add(1)
	case http.MethodPost:
		c.posts.Add(1)
	case http.MethodPatch:
		c.patches.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper leads to the RoundTripper with the connections.
func (c *counted) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// take returns how many requests came since the last call.
func (c *counted) take() [3]int64 {
	return [3]int64{c.gets.Swap(0), c.posts.Swap(0), c.patches.Swap(0)}
}

var serial atomic.Int64

// unused returns a name that no other lock has.
func unused() string { return fmt.Sprint("it-", serial.Add(1)) }

func remove(c coordinationv1client.LeasesGetter, name string) error {
	return c.Leases(namespace).Delete(background, name, metav1.DeleteOptions{})
}

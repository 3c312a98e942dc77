// Package kubernetesopen registers kubernetes: with package open. Import it for its effect.
package kubernetesopen

import (
	"context"
	"net"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/distributed/open/driver"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "kubernetes", Form: "kubernetes:NAMESPACE",
		Kinds: []string{"mutex"},
		More:  slices.Concat(driver.Leased(), []string{"kubeconfig", "context"}),
		Check: check,
		Open:  open,
	})
}

var namespace = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// check refuses a path that is not a namespace, such as a user with a password.
func check(path string) error {
	if !namespace.MatchString(path) {
		return driver.Reason("the path is no namespace, which has lower-case letters, digits and hyphens")
	}
	return nil
}

func open(ctx context.Context, o *driver.Opening) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Params["kubeconfig"]
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Params["context"]}).ClientConfig()
	if err != nil {
		return driver.Reason("no API server is configured: %w", err)
	}
	config.Dial = (&net.Dialer{Timeout: driver.DialTimeout}).DialContext
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return driver.Reason("%w", err)
	}
	o.OnEnd(func() { utilnet.CloseIdleConnectionsFor(transport.Transport) })
	api, err := coordinationv1client.NewForConfigAndClient(config, transport)
	if err != nil {
		return driver.Reason("%w", err)
	}
	c, err := k8slock.New(api, o.Path, caslock.WithLeaseOptions(o.Lease...))
	if err = o.Serve(c, err); err != nil {
		return err
	}
	o.Semaphore = nil // a Lease object has no room for several holders
	// Every user may ask for the version, whatever Lease objects it may read.
	err = api.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	if err != nil {
		return o.Failed(err, apierrors.ReasonForError(err) != "")
	}
	return nil
}

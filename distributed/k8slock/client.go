package k8slock

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// New returns a client of the locks that are Lease objects in a namespace. It sends no request.
// [caslock.Client.Close] ends it, and client is the caller's.
//
// The options come from package caslock, such as [caslock.WithTTL] and [caslock.WithLabel]. kubectl
// shows the holder by its label, in front of the name of its acquisition.
//
// The limit of requests that client has (rest.Config.QPS) does not apply to locks. The fake client
// of client-go is refused: it compares no versions.
func New(client coordinationv1client.CoordinationV1Interface, namespace string, opts ...caslock.Option,
) (*caslock.Client, error) {
	if client == nil {
		return nil, errors.New("k8slock: nil client")
	}
	api := client.RESTClient()
	if api == nil || reflect.ValueOf(api).IsZero() {
		return nil, errors.New("k8slock: the client has no RESTClient, as the fake one of client-go")
	}
	if why := validation.IsDNS1123Label(namespace); len(why) > 0 {
		return nil, fmt.Errorf("k8slock: namespace %q: %s", namespace, why[0])
	}
	place := "kubernetes " + api.Get().URL().Redacted() + " " + namespace
	first := []caslock.Option{caslock.WithLeaseOptions(driver.WithPlace(place, ""))}
	ours := []caslock.Option{caslock.WithFormat(format{}), caslock.WithErrorPrefix("k8slock")}
	return caslock.New(&documents{api, namespace}, append(append(first, opts...), ours...)...)
}

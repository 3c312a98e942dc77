package k8slock

import (
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/jucgo/locks/distributed/caslock"
)

// Documents returns the part of a namespace that locks use.
func Documents(client coordinationv1client.CoordinationV1Interface, namespace string) caslock.Documents {
	return &documents{client.RESTClient(), namespace}
}

// These are the table of answers, and how one is found there.
var (
	Refusals = refusals
	ClassOf  = classOf
)

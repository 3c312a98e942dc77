// Command replicas is a service of several replicas on Kubernetes of which one leads.
//
//	kubectl apply -f examples/stores/replicas/deployment.yaml
//	kubectl get lease replicas -n shop
//
// The replicas compete for a Lease object. The leader does the work that must be done once: here it
// writes a line each second. When its pod ends, it releases the lock, and another replica leads at
// once. If its machine dies, another replica leads after the lease, 15 s here.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/distributed/leader"
)

func main() {
	// Kubernetes ends a pod with SIGTERM.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// The file of KUBECONFIG or ~/.kube/config, or else the service account of the pod.
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	api, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	pod := cmp.Or(os.Getenv("POD"), "this process")
	client, err := k8slock.New(api, cmp.Or(os.Getenv("NAMESPACE"), "default"),
		caslock.WithLabel(pod), caslock.WithTTL(15*time.Second))
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	return leader.Run(ctx, client.Mutex("replicas"), func(ctx context.Context) error { return lead(ctx, pod) })
}

// lead runs in one replica at a time. Its ctx ends when the lock is lost or the pod is to end.
func lead(ctx context.Context, pod string) error {
	hold, _ := locks.HoldFrom(ctx)
	for {
		fmt.Printf("%s leads with token %d\n", pod, hold.Token())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// Command kubernetes makes a report in one process at a time, under a lock that is a Lease object
// of Kubernetes. It runs in a pod, and outside of the cluster with a kubeconfig file.
package main

import (
	"cmp"
	"context"
	"errors"
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
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
	// In a pod, the host is the name of the pod. kubectl shows it as part of the holder.
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	client, err := k8slock.New(api, cmp.Or(os.Getenv("NAMESPACE"), "default"), caslock.WithLabel(host))
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	err = locks.Do(ctx, client.Mutex("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// The API server was out of reach for too long. Another process may hold the lock now.
		return fmt.Errorf("the report is incomplete: %w", err)
	}
	return err
}

// makeReport runs while the lock is held. Its ctx ends when the lock is lost.
func makeReport(ctx context.Context) error {
	hold, _ := locks.HoldFrom(ctx)
	for part := 1; part <= 3; part++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond): // the work
		}
		// A store that compares tokens refuses the writes of a former holder.
		fmt.Printf("write part %d with token %d\n", part, hold.Token())
	}
	return nil
}

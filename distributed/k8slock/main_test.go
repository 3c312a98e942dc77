package k8slock_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // of the elections of client-go
	testbed.Main(m, map[string]testbed.Role{"hold": holdLock, "buy": buy}, 8,
		goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// client returns a client of the locks behind a kubeconfig file.
func client(path string, ttl time.Duration) (*caslock.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	api, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return k8slock.New(api, namespace, caslock.WithTTL(ttl))
}

// holdLock holds the lock it until it is killed.
func holdLock(args []string) error {
	c, err := client(args[0], 2*time.Second)
	if err != nil {
		return err
	}
	return testbed.HoldLock(c.Mutex("it"))
}

// buy takes part in the ticket test.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		c, err := client(args[0], buyersTTL)
		if err != nil {
			return nil, nil, err
		}
		return c.Mutex("tickets"), func() { c.Close(context.Background()) }, nil
	})
}

// buyersTTL is longer than a restart of the API server takes.
const buyersTTL = 20 * time.Second

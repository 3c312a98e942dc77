// The apiserver program is the API server of Kubernetes for the tests: the part of it that serves
// resources of users, over etcd. It serves Lease objects as such a resource, with the storage, the
// versions and the watches that they have in a cluster. It asks nobody for a password.
//
//	apiserver -etcd http://127.0.0.1:2379 -port 6443 -cert own.pem -key key.pem -kubeconfig config
//
// The kubeconfig leads to the program itself. When Lease objects are served, it writes the line
// ready.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

//go:embed leases.yaml
var leases []byte

func main() {
	o := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	r := o.RecommendedOptions
	r.Authentication, r.Authorization, r.Admission = nil, nil, nil
	r.Features.EnablePriorityAndFairness = false
	r.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	etcd := flag.String("etcd", "", "the address of etcd")
	flag.IntVar(&r.SecureServing.BindPort, "port", 0, "the port to serve at")
	flag.StringVar(&r.SecureServing.ServerCert.CertKey.CertFile, "cert", "", "the file of the certificate")
	flag.StringVar(&r.SecureServing.ServerCert.CertKey.KeyFile, "key", "", "the file of its key")
	flag.StringVar(&r.CoreAPI.CoreAPIKubeconfigPath, "kubeconfig", "", "a file that leads to this server")
	version := flag.Bool("version", false, "say which version it is, and end")
	flag.Parse()
	log.SetOutput(os.Stdout) // the standard error has a line for each request that its client gives up
	if *version {
		fmt.Println("apiextensions-apiserver of Kubernetes 0.37.2")
		return
	}
	r.Etcd.StorageConfig.Transport.ServerList = []string{*etcd}
	klog.SetLogger(logr.Discard()) // other kinds of objects, which a cluster has, are missing here
	go func() {
		if err := define(r.CoreAPI.CoreAPIKubeconfigPath); err != nil {
			log.Fatal(err)
		}
		fmt.Println("ready")
	}()
	if err := o.Complete(); err != nil {
		log.Fatal(err)
	}
	config, err := o.Config()
	if err != nil {
		log.Fatal(err)
	}
	// In a cluster, another part of the API server lists the groups, which kubectl asks for.
	config.GenericConfig.BuildHandlerChainFunc = func(h http.Handler, c *genericapiserver.Config) http.Handler {
		next := genericapiserver.DefaultBuildHandlerChain(h, c)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis" {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, groups)
		})
	}
	server, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.GenericAPIServer.PrepareRun().RunWithContext(context.Background()))
}

const groups = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "coordination.k8s.io",
	"versions": [{"groupVersion": "coordination.k8s.io/v1", "version": "v1"}],
	"preferredVersion": {"groupVersion": "coordination.k8s.io/v1", "version": "v1"}}]}`

// define defines Lease objects, and returns when they are served.
func define(kubeconfig string) error {
	var definition extensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(leases, &definition); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, &definition, meta.CreateOptions{})
		if err == nil || errors.IsAlreadyExists(err) {
			path := "/apis/coordination.k8s.io/v1/namespaces/default/leases"
			err = client.RESTClient().Get().AbsPath(path).Do(ctx).Error()
			if err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no Lease objects are served: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

package k8slock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// A document is a Lease object, and its version is the object's resourceVersion:
//
//	method                  request                             verb of RBAC
//	Load                    GET                                 get
//	Swap without a version  POST                                create
//	Swap with a version     PATCH that names the version        patch
//	Watch                   GET of the changes of one object    watch
//	Names                   GET of the objects with our label   list
//	Delete                  DELETE that names the version       delete
//
// A patch keeps all fields that it does not name: labels, annotations and owners of others. The API
// server compares the version and writes in one step of etcd.

// patience is for how long a request waits for its answer. client-go would wait for ever.
const patience = 5 * time.Second

// documents are the Lease objects of a namespace.
type documents struct {
	client    rest.Interface
	namespace string
}

var (
	_ caslock.Documents   = (*documents)(nil)
	_ caslock.Watcher     = (*documents)(nil)
	_ caslock.Lister      = (*documents)(nil)
	_ caslock.Deleter     = (*documents)(nil)
	_ caslock.NameChecker = (*documents)(nil)
)

// object is the part of a Lease object that is a document.
type object struct {
	Metadata metadata                 `json:"metadata"`
	Spec     coordinationv1.LeaseSpec `json:"spec"`
}

type metadata struct {
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// unlimited lets every request pass. The limit of a client is five requests a second by default, so
// other requests of the program would delay a renewal.
var unlimited = flowcontrol.NewFakeAlwaysRateLimiter()

// to makes r a request for Lease objects that is sent once. By default, client-go sends a write
// again if the answer has the header Retry-After. Such a write may have been carried out.
func (d *documents) to(r *rest.Request) *rest.Request {
	return r.Namespace(d.namespace).Resource("leases").MaxRetries(0).Throttle(unlimited)
}

// Load reads the object. A read without a version is linearizable.
func (d *documents) Load(ctx context.Context, name string) ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var found coordinationv1.Lease
	err := d.to(d.client.Get()).Name(name).Do(ctx).Into(&found)
	switch {
	case missing(err):
		return nil, "", nil
	case err != nil:
		return nil, "", unread(err)
	}
	var o object
	o.Spec = found.Spec
	if mark, ok := found.Annotations[annotation]; ok {
		o.Metadata.Annotations = map[string]string{annotation: mark}
	}
	data, err := json.Marshal(o)
	return data, found.ResourceVersion, err
}

// Swap creates the object, or changes it if it has the version.
func (d *documents) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return "", driver.Mark(err, driver.ErrRefused)
	}
	var r *rest.Request
	if version == "" {
		r = d.to(d.client.Post()).Body(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations},
			Spec:       o.Spec,
		})
	} else {
		o.Metadata.ResourceVersion = version
		patch, err := json.Marshal(o)
		if err != nil {
			return "", driver.Mark(err, driver.ErrRefused)
		}
		r = d.to(d.client.Patch(types.MergePatchType)).Name(name).Body(patch)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var written coordinationv1.Lease
	err := r.Do(ctx).Into(&written)
	switch {
	case isStorageError(err), version != "" && missing(err):
		return "", caslock.ErrConflict
	case missing(err):
		return "", writeError(fmt.Errorf("the namespace %q does not exist: create it, by kubectl create namespace: %w",
			d.namespace, err))
	case err != nil:
		return "", writeError(err)
	case written.Annotations[annotation] != o.Metadata.Annotations[annotation]:
		return "", fmt.Errorf("the API server has written another annotation %s: an admission webhook may change it",
			annotation)
	}
	return written.ResourceVersion, nil
}

// Watch follows the object. It begins with any state, since the waiter reads the object again.
func (d *documents) Watch(ctx context.Context, name string, changed func()) error {
	w, err := d.to(d.client.Get()).Param("watch", "true").Param("resourceVersion", "0").
		Param("fieldSelector", "metadata.name="+name).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	changed()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		changed()
	}
	return ctx.Err()
}

// page is how many objects an answer has at most.
const page = "500"

// Names lists the objects that a client has locked once.
func (d *documents) Names(ctx context.Context) (names []string, err error) {
	for next := ""; ; {
		r := d.to(d.client.Get()).Param("labelSelector", label).Param("limit", page)
		if next != "" {
			r = r.Param("continue", next)
		}
		found, err := list(ctx, r)
		if err != nil {
			return names, err
		}
		for i := range found.Items {
			names = append(names, found.Items[i].Name)
		}
		if next = found.Continue; next == "" {
			return names, nil
		}
	}
}

// list returns one answer.
func list(ctx context.Context, r *rest.Request) (found coordinationv1.LeaseList, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err = r.Do(ctx).Into(&found); err != nil {
		err = unread(err)
	}
	return found, err
}

// Delete deletes the object if it has the version.
func (d *documents) Delete(ctx context.Context, name, version string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := d.to(d.client.Delete()).Name(name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}).Do(ctx).Error()
	switch {
	case isStorageError(err), missing(err):
		return caslock.ErrConflict
	case err != nil:
		return writeError(err)
	}
	return nil
}

// CheckName refuses names that an object cannot have.
func (d *documents) CheckName(name string) error {
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		return fmt.Errorf("no Lease object has such a name: %s", strings.Join(why, ", "))
	}
	return nil
}

// isStorageError reports whether the API server says that an object has another version, or is
// there.
func isStorageError(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && classOf(answer.Status()) == classes.Stored
}

// missing reports whether the API server says that an object is not there.
func missing(err error) bool { return apierrors.IsNotFound(err) && !isUnserved(err) }

// isUnserved reports whether the answer comes from a server that serves no Lease objects, perhaps
// because the server is starting.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unread marks the error of a read. Without an answer nothing is in doubt.
func unread(err error) error {
	var unanswered *url.Error
	return storeError(err, errors.As(err, &unanswered))
}

// writeError marks the error of a request.
func writeError(err error) error { return storeError(err, false) }

func storeError(err error, read bool) error {
	if isUnserved(err) {
		return driver.Mark(err, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return classes.NoAnswer(err, read)
	}
	return classOf(answer.Status()).Mark(err)
}

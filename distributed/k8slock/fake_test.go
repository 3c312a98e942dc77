package k8slock_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// fake is an API server in memory. Clients reach it without connections, so that tests can have a
// clock of their own. It does not support watches.
type fake struct {
	tb      testing.TB
	mu      sync.Mutex
	objects map[string]coordinationv1.Lease
	version int // of the last write
}

// bubble runs a test on a fake, with a clock that goes on when all wait.
func bubble(t *testing.T, test func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, &fake{tb: t, objects: make(map[string]coordinationv1.Lease)})
	})
}

func (f *fake) client() *coordinationv1client.CoordinationV1Client { return f.clientBy(f) }

// clientBy returns a client whose requests go by rt.
func (f *fake) clientBy(rt http.RoundTripper) *coordinationv1client.CoordinationV1Client {
	c, err := coordinationv1client.NewForConfigAndClient(&rest.Config{
		Host: "http://fake", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}, &http.Client{Transport: rt})
	require.NoError(f.tb, err)
	return c
}

// serve answers the requests of a connection.
func (f *fake) serve(conn net.Conn) { adaptertest.Serve(conn, f) }

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil { // a connection ended: half of an object is none
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/shop/leases"), "/")
	found, there := f.objects[name]
	switch {
	case r.URL.Query().Has("watch"):
		return storeError(http.StatusForbidden, metav1.StatusReasonForbidden), nil
	case !there && r.Method != http.MethodPost:
		return storeError(http.StatusNotFound, metav1.StatusReasonNotFound), nil
	case r.Method == http.MethodGet:
		return answered(http.StatusOK, found), nil
	}
	next := coordinationv1.Lease{}
	if r.Method == http.MethodPatch {
		found.DeepCopyInto(&next) // what the patch does not name stays
	}
	if !assert.NoError(f.tb, json.Unmarshal(body, &next)) {
		return storeError(http.StatusBadRequest, metav1.StatusReasonBadRequest), nil
	}
	if _, exists := f.objects[next.Name]; exists && (r.Method == http.MethodPost || next.ResourceVersion != found.ResourceVersion) {
		return storeError(http.StatusConflict, metav1.StatusReasonConflict), nil
	}
	f.version++
	next.ResourceVersion = strconv.Itoa(f.version)
	f.objects[next.Name] = next
	return answered(http.StatusOK, next), nil
}

func answered(status int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(text))), ContentLength: int64(len(text)), ProtoMajor: 1, ProtoMinor: 1,
	}
}

func storeError(status int, reason metav1.StatusReason) *http.Response {
	return answered(status, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason,
		Code: int32(status),
	})
}

package k8slock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestTheObjectShowsTheHolder(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	kubectl := testbed.Lookup(t, "kubectl")
	shown := func() string {
		cmd := exec.Command(kubectl, "--kubeconfig", k.Path(), "get", "lease", "-n", namespace)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // for its cache
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	c := open(t, connect(t, k), caslock.WithLabel("web-1"), caslock.WithTTL(29500*time.Millisecond))
	l, owner := c.Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, owner)
	require.Regexp(t, `NAME +HOLDER +AGE\nit +web-1_\S+:\d+ +\d+s\n`, shown())
	spec := read(t, connect(t, k), "it").Spec
	require.EqualValues(t, 30, *spec.LeaseDurationSeconds, "rounded up")
	require.EqualValues(t, h.Token(), *spec.LeaseTransitions)
	require.WithinDuration(t, time.Now(), spec.AcquireTime.Time, time.Minute)
	require.WithinDuration(t, time.Now(), spec.RenewTime.Time, time.Minute)
	require.NoError(t, l.UnlockContext(owner))
	require.Regexp(t, `\nit +\d+s\n`, shown())
	spec = read(t, connect(t, k), "it").Spec
	require.Empty(t, *spec.HolderIdentity)
	require.EqualValues(t, 1, *spec.LeaseDurationSeconds)
	require.EqualValues(t, h.Token(), *spec.LeaseTransitions)
}

func TestOthersSeeWhoHolds(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	l, owner := open(t, connect(t, k), caslock.WithLabel("web_1")).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, owner)
	info, err := open(t, connect(t, k)).Mutex("it").Inspect(background)
	require.NoError(t, err)
	require.True(t, info.Held)
	require.Equal(t, "web_1", info.Holders[0].Label)
	require.Equal(t, os.Getpid(), info.Holders[0].PID)
	require.Equal(t, h.Token(), info.Holders[0].Token)
	require.Positive(t, info.Holders[0].Left)
	require.NoError(t, l.UnlockContext(owner))
}

func TestWhatOthersHaveWrittenStays(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	api := connect(t, k)
	_, err := api.Leases(namespace).Create(background, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: "it", Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{"team": "a"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	l, owner := open(t, api).Mutex("it"), adaptertest.Owner()
	require.EqualValues(t, 1, adaptertest.Hold(t, l, owner).Token())
	require.NoError(t, l.UnlockContext(owner))
	o := read(t, api, "it")
	require.Equal(t, "shop", o.Labels["app"])
	require.Equal(t, "a", o.Annotations["team"])
	require.Len(t, o.OwnerReferences, 1)
	require.Len(t, o.Labels, 2)
}

func TestObjectsOfAnotherKindAreForeign(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	api := connect(t, k)
	holder, strategy := "pod-7", coordinationv1.OldestEmulationVersion
	create(t, api, "no-duration", coordinationv1.LeaseSpec{HolderIdentity: &holder})
	create(t, api, "chosen", coordinationv1.LeaseSpec{Strategy: &strategy})
	c := open(t, api)
	for _, name := range []string{"no-duration", "chosen"} {
		before := read(t, api, name)
		require.ErrorIs(t, c.Mutex(name).LockContext(adaptertest.Owner()), locks.ErrForeign)
		require.Equal(t, before, read(t, api, name))
	}
}

func TestNamesAreThoseOfObjects(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c := open(t, dial(t, &rest.Config{Host: s.URL}))
	for _, name := range []string{"Orders", "or/ders", "orders_1", "-x", strings.Repeat("x", 254)} {
		testbed.Refused(t, c.Mutex(name), "no Lease object has such a name")
	}
	testbed.Refused(t, c.Mutex(""), "the name is empty")
}

func TestNamesAreListedAndSwept(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	api := connect(t, k)
	create(t, api, "of-another-program", coordinationv1.LeaseSpec{})
	c, owner := open(t, api), adaptertest.Owner()
	for _, name := range []string{"a", "b.c", "held"} {
		adaptertest.Hold(t, c.Mutex(name), owner)
	}
	require.NoError(t, c.Mutex("a").UnlockContext(owner))
	require.NoError(t, c.Mutex("b.c").UnlockContext(owner))
	names, err := c.Names(background, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b.c", "held"}, names)
	swept, err := c.Sweep(background, "", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b.c"}, swept)
	require.Nil(t, read(t, api, "a"))
	require.NoError(t, c.Mutex("held").UnlockContext(owner))
}

func TestAPairTakesThreeRequestsAtMost(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	var requests counted
	cfg := config(t, k)
	cfg.Wrap(requests.wrap)
	l, owner := open(t, dial(t, cfg)).Mutex("it"), adaptertest.Owner()
	pair := func() {
		adaptertest.Hold(t, l, owner)
		require.NoError(t, l.UnlockContext(owner))
	}
	pair()
	require.Equal(t, [3]int64{1, 1, 1}, requests.take(), "GET, POST and PATCH of a new object")
	pair()
	require.Equal(t, [3]int64{0, 0, 2}, requests.take(), "of a known object")
	h := adaptertest.Hold(t, l, owner)
	requests.take()
	require.NoError(t, h.Extend(owner, time.Minute))
	require.Equal(t, [3]int64{0, 0, 1}, requests.take(), "of a renewal")
	require.NoError(t, l.UnlockContext(owner))
}

func TestTheClientsOwnLimitDelaysNothing(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	cfg := config(t, k)
	cfg.QPS, cfg.Burst = 0.001, 1
	l, owner := open(t, dial(t, cfg)).Mutex("it"), adaptertest.Owner()
	for range 5 {
		adaptertest.Hold(t, l, owner)
		require.NoError(t, l.UnlockContext(owner))
	}
}

// rules are the rules of a role.
type rules struct {
	Rules []struct{ Resources, ResourceNames, Verbs []string }
}

func TestTheRulesOfTheReadmeSuffice(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)\n---").FindSubmatch(page)
	require.NotNil(t, block)
	var role rules
	require.NoError(t, yaml.Unmarshal(block[1], &role))

	k := testbed.StartKubernetes(t)
	var mu sync.Mutex
	used := make(map[string]bool)
	cfg := config(t, k)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper{rt, func(r *http.Request) (*http.Response, error) {
			verb := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
			name := strings.TrimPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/shop/leases")
			named := name == "/report"
			if verb == "" {
				verb = "get"
				if r.URL.Query().Has("watch") {
					verb, named = "watch", r.URL.Query().Get("fieldSelector") == "metadata.name=report"
				}
			}
			allowed := false
			for _, rule := range role.Rules {
				allowed = allowed || slices.Contains(rule.Verbs, verb) && (named || len(rule.ResourceNames) == 0)
			}
			assert.True(t, allowed, "%s of %s", verb, r.URL)
			mu.Lock()
			used[verb] = true
			mu.Unlock()
			return rt.RoundTrip(r)
		}}
	})
	owner := adaptertest.Owner()
	a, b := open(t, dial(t, cfg)).Mutex("report"), open(t, dial(t, cfg)).Mutex("report")
	require.NoError(t, adaptertest.Hold(t, a, owner).Extend(owner, time.Minute))
	got := make(chan error, 1)
	go func() { got <- b.LockContext(owner) }()
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return used["watch"]
	}, long, time.Millisecond)
	require.NoError(t, a.UnlockContext(owner))
	require.NoError(t, <-got)
	_, err = a.ForceUnlock(background)
	require.NoError(t, err)
	require.ErrorIs(t, b.UnlockContext(owner), locks.ErrLost)
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			require.True(t, used[verb], "%s is not needed", verb)
		}
	}
}

type roundTripper struct {
	under http.RoundTripper
	do    func(r *http.Request) (*http.Response, error)
}

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return rt.do(r) }

func (rt roundTripper) WrappedRoundTripper() http.RoundTripper { return rt.under }

func TestHoldsAndWaitsSurviveAServersRestart(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	var requests counted
	cfg := config(t, k)
	cfg.Wrap(requests.wrap)
	a, b := open(t, connect(t, k)).Mutex("it"), open(t, dial(t, cfg)).Mutex("it")
	owner, other := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, a, owner)
	got := make(chan error, 1)
	go func() { got <- b.LockContext(other) }()
	require.Eventually(t, func() bool { return requests.gets.Load() > 2 }, long, time.Millisecond, "it waits")
	k.Kill()
	k.Restart()
	require.NoError(t, h.Err())
	require.NoError(t, h.Extend(owner, time.Minute))
	require.NoError(t, a.UnlockContext(owner))
	require.NoError(t, <-got)
	next, err := b.Hold(other)
	require.NoError(t, err)
	require.Equal(t, h.Token()+1, next.Token())
	require.NoError(t, b.UnlockContext(other))
}

func TestAKilledProcessFreesItsLockByLease(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	child := testbed.Child(t, "hold", k.Path())
	require.NotEqual(t, "0", child.Line(), "the token")
	child.Kill()
	token := *read(t, connect(t, k), "it").Spec.LeaseTransitions
	l, owner := open(t, connect(t, k)).Mutex("it"), adaptertest.Owner()
	require.Greater(t, adaptertest.Hold(t, l, owner).Token(), uint64(token))
	require.NoError(t, l.UnlockContext(owner))
}

func TestTicketsAreSoldOnceThroughRestarts(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	restarts := 0
	testbed.Tickets{
		Role: "buy", Args: []string{k.Path()}, Buyers: 60, Processes: 3,
		Trouble: func() {
			if restarts++; restarts > 2 { // each takes some seconds
				time.Sleep(10 * time.Millisecond)
				return
			}
			k.Kill()
			k.Restart()
		},
	}.Run(t)
	require.GreaterOrEqual(t, restarts, 1)
}

// answers returns a client of a server that gives this answer to all writes, and to reads if it is a
// refusal. It notes the bodies of requests.
func answers(t *testing.T, status int, reason string) (c *caslock.Client, bodies func() []string) {
	t.Helper()
	var mu sync.Mutex
	var sent []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, why := status, reason
		if body, _ := io.ReadAll(r.Body); r.Method != http.MethodGet {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, string(body))
		} else if status >= http.StatusInternalServerError {
			code, why = http.StatusNotFound, "NotFound"
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "the message",
			"reason": %q, "code": %d}`, why, code)
	}))
	t.Cleanup(s.Close)
	c, err := k8slock.New(dial(t, &rest.Config{Host: s.URL}), namespace, caslock.WithLeaseOptions(
		lease.WithRetry(lease.RetryNever), lease.WithReleaseTimeout(time.Millisecond)))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(background) })
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(sent)
	}
}

func TestARefusalIsReturnedInWords(t *testing.T) {
	t.Parallel()
	c, _ := answers(t, http.StatusForbidden, "Forbidden")
	err := c.Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, `k8slock: lock "it": `)
	require.ErrorContains(t, err, "the message")
}

func TestAWriteIsSentOnce(t *testing.T) {
	t.Parallel()
	c, bodies := answers(t, http.StatusInternalServerError, "InternalError")
	err := c.Mutex("it").LockContext(adaptertest.Owner())
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrRefused)
	sent := bodies()
	require.NotEmpty(t, sent)
	slices.Sort(sent)
	require.Len(t, slices.Compact(sent), len(sent), "each write has a text of its own")
}

func TestARequestThatHangsEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := coordinationv1client.NewForConfigAndClient(&rest.Config{Host: "http://silent"}, &http.Client{
			Transport: roundTripper{do: func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}},
		})
		require.NoError(t, err)
		d := k8slock.Documents(c, namespace)
		for what, request := range map[string]func() error{
			"Load":   func() error { _, _, err := d.Load(background, "it"); return err },
			"create": func() error { _, err := d.Swap(background, "it", []byte("{}"), ""); return err },
			"change": func() error { _, err := d.Swap(background, "it", []byte("{}"), "1"); return err },
			"Delete": func() error { return d.(caslock.Deleter).Delete(background, "it", "1") },
			"Names":  func() error { _, err := d.(caslock.Lister).Names(background); return err },
		} {
			began := time.Now()
			err := request()
			require.Error(t, err, what)
			require.Equal(t, 5*time.Second, time.Since(began), what)
			read := what == "Load" || what == "Names"
			require.Equal(t, read, errors.Is(err, lease.ErrUnreachable), what)
			require.NotErrorIs(t, err, lease.ErrRefused, what)
		}
		_, err = open(t, c).Mutex("it").Inspect(background)
		require.ErrorIs(t, err, lease.ErrUnreachable)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "no context of the caller")
	})
}

func TestAnUnreachableServerIsReported(t *testing.T) {
	t.Parallel()
	c := open(t, dial(t, &rest.Config{Host: "http://127.0.0.1:1"}))
	require.ErrorIs(t, c.Mutex("it").LockContext(adaptertest.Owner()), lease.ErrUnreachable)
}

func TestAServerWithoutLeaseObjectsIsReported(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c := open(t, dial(t, &rest.Config{Host: s.URL}))
	err := c.Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.ErrorContains(t, err, "could not find the requested resource")
}

// nothing is a client without a RESTClient, as the fake one of client-go.
type nothing struct {
	coordinationv1client.CoordinationV1Interface
}

func (nothing) RESTClient() rest.Interface { return (*rest.RESTClient)(nil) }

func TestWrongArgumentsAreRefused(t *testing.T) {
	_, err := k8slock.New(nil, namespace)
	require.ErrorContains(t, err, "k8slock: nil client")
	s := dial(t, &rest.Config{Host: "http://127.0.0.1:1"})
	for _, bad := range []string{"", "Shop", "a.b", "kube/system"} {
		_, err = k8slock.New(s, bad)
		require.ErrorContains(t, err, "k8slock: namespace ")
	}
	_, err = k8slock.New(nothing{}, namespace)
	require.ErrorContains(t, err, "no RESTClient")
	_, err = k8slock.New(s, namespace, caslock.WithTTL(-1))
	require.ErrorContains(t, err, "k8slock: ")
}

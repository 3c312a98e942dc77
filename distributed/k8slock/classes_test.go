package k8slock_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/distributed/lease"
)

// refusalOf returns the answer that a row of the table is about.
func refusalOf(code string) *http.Response {
	head, text, _ := strings.Cut(code, ": ")
	number, reason, _ := strings.Cut(head, " ")
	status, err := strconv.Atoi(strings.ReplaceAll(number, "xx", "77"))
	if err != nil {
		panic(err)
	}
	return answered(status, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReason(reason), Code: int32(status), Message: "because " + text,
	})
}

func newFake(tb testing.TB) *fake {
	return &fake{tb: tb, objects: make(map[string]coordinationv1.Lease)}
}

func TestLocksFollowTheClassOfAnAnswer(t *testing.T) {
	t.Parallel()
	var cases []adaptertest.Case[string]
	for _, r := range k8slock.Refusals {
		if r.Class != classes.Stored {
			cases = append(cases, adaptertest.Case[string]{Name: r.Code, Class: r.Class, Answer: r.Code, Text: "because"})
		}
	}
	start := func(
		t *testing.T, c adaptertest.Case[string],
	) (client, rival *caslock.Client, set func(adaptertest.Mood)) {
		f := newFake(t)
		way := &adaptertest.Transport{
			Server: f, IsWrite: func(r *http.Request) bool { return r.Method != http.MethodGet },
			Answer: func(*http.Request) (*http.Response, error) { return refusalOf(c.Answer), nil },
		}
		return open(t, f.clientBy(way)), open(t, f.client()), way.Set
	}
	adaptertest.TestClasses(t, cases, adaptertest.Kinds[*caslock.Client]{Mutex: adaptertest.Documents.Mutex}, start)
}

func TestAnswersAboutTheObjectAreConflicts(t *testing.T) {
	t.Parallel()
	adaptertest.TestConflicts(t, k8slock.Refusals, func(code string) error {
		way := &adaptertest.Transport{
			Answer:  func(*http.Request) (*http.Response, error) { return refusalOf(code), nil },
			IsWrite: func(*http.Request) bool { return true },
		}
		way.Set(adaptertest.Refusing)
		_, err := k8slock.Documents(newFake(t).clientBy(way), namespace).Swap(background, "it", []byte("{}"), "")
		return err
	})
}

func TestAMissingNamespaceIsNamed(t *testing.T) {
	t.Parallel()
	way := &adaptertest.Transport{
		Server: newFake(t), IsWrite: func(r *http.Request) bool { return r.Method != http.MethodGet },
		Answer: func(*http.Request) (*http.Response, error) { return refusalOf("404 NotFound"), nil },
	}
	way.Set(adaptertest.NoWrites)
	err := open(t, newFake(t).clientBy(way)).Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorContains(t, err, `k8slock: lock "it": the namespace "shop" does not exist: `+
		"create it, by kubectl create namespace: because")
	require.ErrorIs(t, err, lease.ErrRefused)
}

// The reasons come from the package that has them for all clients.
func TestEachReasonHasItsClass(t *testing.T) {
	t.Parallel()
	for status, reason := range map[metav1.StatusReason]struct {
		code  int32
		class classes.Class
	}{
		metav1.StatusReasonUnknown:               {500, classes.Unclear},
		metav1.StatusReasonUnauthorized:          {401, classes.Connection},
		metav1.StatusReasonForbidden:             {403, classes.Request},
		metav1.StatusReasonNotFound:              {404, classes.Request},
		metav1.StatusReasonAlreadyExists:         {409, classes.Stored},
		metav1.StatusReasonConflict:              {409, classes.Stored},
		metav1.StatusReasonGone:                  {410, classes.Moment},
		metav1.StatusReasonInvalid:               {422, classes.Request},
		metav1.StatusReasonServerTimeout:         {500, classes.Doubt},
		metav1.StatusReasonStoreReadError:        {500, classes.Unclear},
		metav1.StatusReasonTimeout:               {504, classes.Doubt},
		metav1.StatusReasonTooManyRequests:       {429, classes.Moment},
		metav1.StatusReasonBadRequest:            {400, classes.Request},
		metav1.StatusReasonMethodNotAllowed:      {405, classes.Request},
		metav1.StatusReasonNotAcceptable:         {406, classes.Request},
		metav1.StatusReasonRequestEntityTooLarge: {413, classes.Request},
		metav1.StatusReasonUnsupportedMediaType:  {415, classes.Request},
		metav1.StatusReasonInternalError:         {500, classes.Unclear},
		metav1.StatusReasonExpired:               {410, classes.Moment},
		metav1.StatusReasonServiceUnavailable:    {503, classes.Doubt},
	} {
		t.Run(fmt.Sprint(reason.code, status), func(t *testing.T) {
			require.Equal(t, reason.class, k8slock.ClassOf(metav1.Status{Code: reason.code, Reason: status}))
		})
	}
}

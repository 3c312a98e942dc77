package natslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/natslock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// stream is the configuration of a bucket, as the library makes it.
func stream(bucket string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + bucket, Subjects: []string{"$KV." + bucket + ".>"}, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardNew, AllowRollup: true, DenyDelete: true, AllowDirect: true,
	}
}

func TestABucketThatBreaksLocksIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	create(t, js, 1)
	for why, change := range map[string]func(c *jetstream.StreamConfig){
		"(TTL)":              func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"(LimitMarkerTTL)":   func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
		"(MaxBytes or":       func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
		"or MaxMsgs)":        func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 },
		"discards keys":      func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 100 },
		"(memory storage)":   func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"asynchronous":       func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"(Retention)":        func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
		"(NoAck)":            func(c *jetstream.StreamConfig) { c.NoAck = true },
		"is sealed":          func(c *jetstream.StreamConfig) { c.Sealed = true },
		"is a mirror":        func(c *jetstream.StreamConfig) { mirror(c) },
		"has sources":        func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{other} },
		"(SubjectTransform)": func(c *jetstream.StreamConfig) { transform(c) },
		"DiscardNewPerSubject": func(c *jetstream.StreamConfig) {
			c.DiscardNewPerSubject = true
		},
	} {
		t.Run(why, func(t *testing.T) {
			bucket := unused()
			config := stream(bucket)
			change(&config)
			sealed := config.Sealed
			config.Sealed = false // a stream is sealed later
			s, err := js.CreateStream(background, config)
			require.NoError(t, err)
			if sealed {
				config = s.CachedInfo().Config
				config.Sealed = true
				_, err = js.UpdateStream(background, config)
				require.NoError(t, err)
			}
			_, err = natslock.New(background, js, bucket)
			require.ErrorContains(t, err, why)
			require.ErrorContains(t, err, `natslock: bucket "`+bucket+`": locks are not safe in it: `)
		})
	}
}

var other = &jetstream.StreamSource{Name: "KV_it1"}

// mirror makes c a mirror of another bucket.
func mirror(c *jetstream.StreamConfig) {
	c.Subjects, c.Mirror = nil, other
	c.Discard = jetstream.DiscardNew
}

func transform(c *jetstream.StreamConfig) {
	c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Subjects[0], Destination: "other.>"}
}

func TestABucketThatIsMissingIsAnError(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	_, err := natslock.New(background, js, "none")
	require.ErrorIs(t, err, jetstream.ErrBucketNotFound)
	require.ErrorContains(t, err, `natslock: bucket "none": create it, by CreateKeyValue or nats kv add: `)
	_, err = natslock.New(background, js, "a b")
	require.ErrorIs(t, err, jetstream.ErrInvalidBucketName)
	_, err = natslock.New(background, nil, "none")
	require.ErrorContains(t, err, "nil JetStream")
}

func TestABucketThatIsMadeAnewIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	l, ctx := open(t, js, bucket).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, ctx)
	require.NoError(t, l.UnlockContext(ctx))
	require.NoError(t, js.DeleteKeyValue(background, bucket))
	createAs(t, js, jetstream.KeyValueConfig{Bucket: bucket})
	err := l.LockContext(ctx)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "made anew")
	l = open(t, js, bucket).Mutex("it")
	adaptertest.Hold(t, l, ctx)
	require.NoError(t, l.UnlockContext(ctx))
}

func TestABucketThatIsChangedLaterIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	c, ctx := open(t, js, bucket), adaptertest.Owner()
	s, err := js.Stream(background, "KV_"+bucket)
	require.NoError(t, err)
	config := s.CachedInfo().Config
	config.MaxAge = time.Hour
	_, err = js.UpdateStream(background, config)
	require.NoError(t, err)
	err = c.Mutex("it").LockContext(ctx)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "(TTL)")
}

func TestAHolderLearnsAtOnceThatItsBucketWasDeleted(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	l, ctx := open(t, js, bucket, caslock.WithTTL(30*time.Second)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	require.NoError(t, js.DeleteKeyValue(background, bucket))
	require.ErrorIs(t, h.Extend(ctx, time.Minute), locks.ErrLost) // as a renewal
	require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	require.ErrorContains(t, l.LockContext(ctx), "the bucket was deleted")
}

func TestARefusedWriteSaysThatTheBucketWasChanged(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	// Close tries to release the hold for the release timeout. Then the hold is over.
	short := caslock.WithLeaseOptions(lease.WithTTL(10*time.Second), lease.WithReleaseTimeout(12*time.Second))
	l, ctx := open(t, js, bucket, short).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, ctx)
	s, err := js.Stream(background, "KV_"+bucket)
	require.NoError(t, err)
	config := s.CachedInfo().Config
	config.Sealed = true
	_, err = js.UpdateStream(background, config)
	require.NoError(t, err)
	err = l.UnlockContext(ctx)
	require.ErrorIs(t, err, locks.ErrLost)
	require.ErrorContains(t, err, "the bucket was changed: locks are not safe in it: it is sealed")
}

// A client of a leaf reaches the bucket of the hub by the name of its domain.
func TestAnotherDomainHasLocks(t *testing.T) {
	t.Parallel()
	port := testbed.Port(t)
	hub := testbed.StartNATS(t, testbed.NATSCluster{
		Version: version, Domain: "hub", More: fmt.Sprintf(`leafnodes { listen: "127.0.0.1:%d" }`, port),
	})[0]
	leaf := testbed.StartNATS(t, testbed.NATSCluster{
		Version: version, Domain: "leaf",
		More: fmt.Sprintf(`leafnodes { remotes: [{ url: "nats://127.0.0.1:%d" }] }`, port),
	})[0]
	direct := connect(t, hub.Addr())
	bucket := create(t, direct, 1)
	js, err := jetstream.NewWithDomain(connect(t, leaf.Addr()).Conn(), "hub")
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the leaf joins the hub
		_, err := js.KeyValue(background, bucket)
		return err == nil
	}, long, 10*time.Millisecond)
	l, m, ctx := open(t, js, bucket).Mutex("it"), open(t, direct, bucket).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, ctx)
	ok, err := m.TryLockContext(adaptertest.Owner())
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, l.UnlockContext(ctx))
}

// rights is the block of the README.
func rights(tb testing.TB) string {
	tb.Helper()
	_, block, found := strings.Cut(readme(tb), "```text\nauthorization")
	require.True(tb, found)
	block = "authorization" + block
	block, _, _ = strings.Cut(block, "```")
	return block
}

func TestTheRightsOfTheReadmeSuffice(t *testing.T) {
	t.Parallel()
	s := startWith(t, rights(t))
	admin := connect(t, s.Addr(), nats.UserInfo("admin", "change-me-too"))
	createAs(t, admin, jetstream.KeyValueConfig{Bucket: "locks"})
	complaints := make(chan error, 100)
	js := connect(t, s.Addr(), nats.UserInfo("worker", "change-me"), nats.CustomInboxPrefix("_INBOX_worker"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { complaints <- err }))
	c, ctx := open(t, js, "locks"), adaptertest.Owner()
	l, other := c.Mutex("it"), open(t, js, "locks").Mutex("it")
	adaptertest.Hold(t, l, ctx)
	rival := adaptertest.Owner()
	waiting := adaptertest.Start(other, rival)
	consumers(t, admin, "locks", 1)
	require.NoError(t, l.UnlockContext(ctx))
	require.NoError(t, adaptertest.Result(t, waiting))
	require.NoError(t, other.UnlockContext(rival))
	all, err := c.Names(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []string{"it"}, all)
	_, err = c.Sweep(ctx, "", 0)
	require.NoError(t, err)
	select {
	case err := <-complaints:
		t.Error(err)
	default:
	}
}

func TestAMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"$KV.locks.>", "$JS.API.STREAM.MSG.GET.KV_locks"} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			less := strings.Replace(rights(t), `"`+subject+`"`, "", 1)
			s := startWith(t, less)
			admin := connect(t, s.Addr(), nats.UserInfo("admin", "change-me-too"))
			createAs(t, admin, jetstream.KeyValueConfig{Bucket: "locks"})
			js := connect(t, s.Addr(), nats.UserInfo("worker", "change-me"), nats.CustomInboxPrefix("_INBOX_worker"),
				nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
			err := open(t, js, "locks").Mutex("it").LockContext(adaptertest.Owner())
			require.ErrorIs(t, err, nats.ErrPermissionViolation)
			require.ErrorIs(t, err, lease.ErrRefused)
			require.False(t, errors.Is(err, context.DeadlineExceeded))
			require.ErrorContains(t, err, strings.TrimSuffix(subject, ">"))
		})
	}
}

package consullock_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAWrongOptionIsRefused(t *testing.T) {
	client := connect(t, "127.0.0.1:1")
	for why, opt := range map[string]consullock.Option{
		`prefix "/locks/"`:      consullock.WithPrefix("/locks/"),
		`prefix "locks//"`:      consullock.WithPrefix("locks//"),
		`prefix "50%"`:          consullock.WithPrefix("50%"),
		"lock delay of -1s":     consullock.WithLockDelay(-time.Second),
		"lock delay of 1m1s":    consullock.WithLockDelay(61 * time.Second),
		"TTL of 0s, at least 1": consullock.WithTTL(0),
	} {
		_, err := consullock.New(client, opt)
		require.ErrorContains(t, err, "consullock: "+why)
	}
	_, err := consullock.New(nil)
	require.ErrorContains(t, err, "consullock: nil client")
}

func TestEveryMethodRefusesABadName(t *testing.T) {
	t.Parallel()
	c := open(t, connect(t, startServer(t)))
	testbed.Refused(t, c.Mutex(""), "the name is empty")
	testbed.Refused(t, c.Mutex(strings.Repeat("x", 1100)), "the name has 1106 bytes as a key")
}

func TestAnyNameIsALock(t *testing.T) {
	t.Parallel()
	direct := connect(t, startServer(t))
	c := open(t, direct)
	_, err := direct.KV().Put(&api.KVPair{Key: "locks/config"}, nil)
	require.NoError(t, err)
	var all []string
	for _, name := range []string{"50%", "a/../b", "a//b", "a/b", "ä ?#"} {
		l, ctx := c.Mutex(name), adaptertest.Owner()
		h := adaptertest.Hold(t, l, ctx)
		require.EqualValues(t, h.Token(), pairOf(t, direct, c.Key(name)).ModifyIndex)
		require.NoError(t, l.UnlockContext(ctx))
		all = append(all, name)
	}
	names, err := c.Names(background, "")
	require.NoError(t, err)
	require.ElementsMatch(t, all, names)
	names, err = c.Names(background, "a/*")
	require.NoError(t, err)
	require.Equal(t, []string{"a/b"}, names)
	_, err = c.Names(background, "[")
	require.ErrorContains(t, err, "consullock: list names: syntax error in pattern")
}

func TestATokenGrowsOverADeletion(t *testing.T) {
	t.Parallel()
	direct := connect(t, startServer(t))
	l, ctx := open(t, direct).Mutex("it"), adaptertest.Owner()
	var last uint64
	for range 3 {
		h := adaptertest.Hold(t, l, ctx)
		require.Greater(t, h.Token(), last)
		last = h.Token()
		require.NoError(t, l.UnlockContext(ctx))
		_, err := direct.KV().Delete(consullock.DefaultPrefix+"it", nil)
		require.NoError(t, err)
	}
}

func TestWhatIsNoLockIsForeign(t *testing.T) {
	t.Parallel()
	direct := connect(t, startServer(t))
	l := open(t, direct).Mutex("it")
	for _, flags := range []uint64{0, api.SemaphoreFlagValue} {
		put := &api.KVPair{Key: consullock.DefaultPrefix + "it", Flags: flags, Value: []byte("a photograph")}
		_, err := direct.KV().Put(put, nil)
		require.NoError(t, err)
		require.ErrorIs(t, l.LockContext(adaptertest.Owner()), locks.ErrForeign)
		_, err = l.Inspect(background)
		require.ErrorIs(t, err, locks.ErrForeign)
		_, err = l.ForceUnlock(background)
		require.ErrorIs(t, err, locks.ErrForeign)
		require.Equal(t, "a photograph", string(pairOf(t, direct, put.Key).Value))
	}
}

func TestInspectTellsTheHolder(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	l, ctx := open(t, connect(t, addr), consullock.WithLabel("nightly")).Mutex("it"), adaptertest.Owner()
	other := open(t, connect(t, addr)).Mutex("it")
	info, err := other.Inspect(background)
	require.NoError(t, err)
	require.False(t, info.Held)
	h := adaptertest.Hold(t, l, ctx)
	info, err = other.Inspect(background)
	require.NoError(t, err)
	require.True(t, info.Held)
	require.Equal(t, -1, info.Waiting)
	require.Len(t, info.Holders, 1)
	require.Equal(t, "nightly", info.Holders[0].Label)
	require.NotZero(t, info.Holders[0].PID)
	require.Equal(t, h.Token(), info.Holders[0].Token)
	require.WithinDuration(t, time.Now(), info.Holders[0].Since, long)
	require.NoError(t, l.UnlockContext(ctx))
}

func TestAForcedUnlockIsALoss(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	c := open(t, connect(t, addr), term(9*time.Second), consullock.WithLockDelay(time.Minute))
	l, ctx := c.Mutex("it"), adaptertest.Owner()
	other, rival := open(t, connect(t, addr)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	ok, err := other.ForceUnlock(background)
	require.NoError(t, err)
	require.True(t, ok)
	g := adaptertest.Hold(t, other, rival)
	require.Greater(t, g.Token(), h.Token())
	adaptertest.AwaitLoss(t, h)
	require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	require.NoError(t, g.Err(), "the former holder has touched nothing")
	require.NoError(t, other.UnlockContext(rival))
	ok, err = other.ForceUnlock(background)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestATooShortTTLIsRefusedInWords(t *testing.T) {
	t.Parallel()
	l := open(t, connect(t, startServer(t)), term(900*time.Millisecond)).Mutex("it") // session_ttl_min is 1s
	err := l.LockContext(adaptertest.Owner())
	require.ErrorContains(t, err, `consullock: lock "it": no session: the servers refuse a TTL of 900ms`)
	require.ErrorContains(t, err, "see their session_ttl_min")
	require.ErrorIs(t, err, lease.ErrRefused)
}

func TestAnAgentThatIsAwayIsUnreachable(t *testing.T) {
	t.Parallel()
	err := open(t, connect(t, "127.0.0.1:1")).Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrUnreachable)
}

// rules returns the rules of the README.
func rules(tb testing.TB) string {
	tb.Helper()
	_, block, found := strings.Cut(readme(tb), "```hcl\n")
	require.True(tb, found)
	block, _, _ = strings.Cut(block, "```")
	return block
}

func TestTheRulesOfTheReadmeSuffice(t *testing.T) {
	t.Parallel()
	const root = "8b9a3a3c-0000-4000-8000-000000000001"
	addr := testbed.StartConsul(t, testbed.ConsulCluster{Version: version, Token: root, More: map[string]any{
		"acl": map[string]any{
			"enabled": true, "default_policy": "deny", "tokens": map[string]any{"initial_management": root},
		},
	}})[0].Addr()
	admin := connectBy(t, addr, root, nil)
	token := func(policy string) string {
		p, _, err := admin.ACL().PolicyCreate(&api.ACLPolicy{Name: unused(), Rules: policy}, nil)
		require.NoError(t, err)
		token, _, err := admin.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: p.ID}}}, nil)
		require.NoError(t, err)
		return token.SecretID
	}
	client := connectBy(t, addr, token(rules(t)), nil)
	c, ctx := open(t, client, term(6*time.Second)), adaptertest.Owner()
	l, other, rival := c.Mutex("it"), open(t, client).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	waiting := adaptertest.Start(other, rival)
	first, _ := h.Deadline()
	require.Eventually(t, func() bool { // it is renewed
		until, _ := h.Deadline()
		return until.After(first)
	}, long, 10*time.Millisecond)
	require.NoError(t, l.UnlockContext(ctx))
	require.NoError(t, adaptertest.Result(t, waiting))
	require.NoError(t, other.UnlockContext(rival))
	names, err := c.Names(background, "")
	require.NoError(t, err)
	require.Equal(t, []string{"it"}, names)

	for less, why := range map[string]string{
		`key_prefix "locks/" { policy = "read" } session_prefix "" { policy = "write" }`:  "Permission denied",
		`key_prefix "locks/" { policy = "write" } session_prefix "" { policy = "read" }`:  "no session: ",
		`key_prefix "other/" { policy = "write" } session_prefix "" { policy = "write" }`: "403",
	} {
		secret := token(less)
		err := open(t, connectBy(t, addr, secret, nil)).Mutex("index-held").LockContext(adaptertest.Owner())
		require.ErrorContains(t, err, why, less)
		require.ErrorIs(t, err, lease.ErrRefused)
		require.NotErrorIs(t, err, lease.ErrUnavailable)
		require.NotContains(t, err.Error(), secret)
	}
}

func TestTheSessionHasNoHealthChecks(t *testing.T) {
	t.Parallel()
	direct := connect(t, startServer(t))
	l, ctx := open(t, direct, consullock.WithLabel("nightly")).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, ctx)
	pair := pairOf(t, direct, consullock.DefaultPrefix+"it")
	entry, _, err := direct.Session().Info(pair.Session, nil)
	require.NoError(t, err)
	text, err := json.Marshal(entry)
	require.NoError(t, err)
	require.Empty(t, entry.NodeChecks, "%s", text)
	require.Empty(t, entry.Checks, "%s", text)
	require.Equal(t, consullock.DefaultTTL, entry.LockDelay, "%s", text)
	require.Equal(t, "15s", entry.TTL)
	require.Equal(t, "release", entry.Behavior)
	require.Contains(t, entry.Name, "nightly")
	require.NoError(t, l.UnlockContext(ctx))
}

package consullock_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// distant is a fake whose answers take a while. It counts transactions, and may answer them.
type distant struct {
	*fake
	away   atomic.Int64 // a [time.Duration]
	txns   atomic.Int64
	answer func() *http.Response // instead of the fake, if not nil and not returning nil
}

func (d *distant) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(d.away.Load()))
	if r.URL.Path == "/v1/txn" {
		d.txns.Add(1)
		if d.answer != nil {
			if resp := d.answer(); resp != nil {
				return resp, nil
			}
		}
	}
	return d.fake.RoundTrip(r)
}

// openDistant returns a client of d, and its store.
func openDistant(t *testing.T, d *distant) (*consullock.Client, driver.Store) {
	client, err := api.NewClient(&api.Config{Address: "fake", HttpClient: &http.Client{Transport: d}})
	require.NoError(t, err)
	var store driver.Store
	c, err := consullock.New(client, consullock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
		store = s
		return s
	})))
	require.NoError(t, err)
	return c, store
}

// held returns how many keys of f are held.
func (f *fake) held() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pair := range f.pairs {
		if pair.Session != "" {
			n++
		}
	}
	return n
}

func TestCloseReleasesTenThousandHoldsInTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &distant{fake: newFake()}
		c, _ := openDistant(t, agent)
		const n = 10_000
		ctx := adaptertest.Owner()
		for i := range n {
			require.NoError(t, c.Mutex(fmt.Sprint("it", i)).LockContext(ctx))
		}
		require.Equal(t, n, agent.held())
		agent.away.Store(int64(40 * time.Millisecond))
		agent.txns.Store(0)
		began := time.Now()

		require.NoError(t, c.Close(background))

		t.Logf("closed in %v by %d transactions", time.Since(began), agent.txns.Load())
		require.Less(t, time.Since(began), 2*time.Second)
		require.LessOrEqual(t, agent.txns.Load(), int64(n/100*4))
		require.Zero(t, agent.held())
	})
}

func TestABatchReleasesTheOthersOfATransactionThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &distant{fake: newFake()}
		c, store := openDistant(t, agent)
		ids := adaptertest.Acquire(t, store, 40, func(i int) string { return fmt.Sprint("it", i) })
		agent.mu.Lock()
		for _, i := range []int{7, 39} { // another program overwrites two keys
			pair := *agent.pairs[c.Key(ids[i].Name)]
			agent.change()
			pair.ModifyIndex = agent.index
			agent.pairs[pair.Key] = &pair
		}
		agent.mu.Unlock()
		agent.txns.Store(0)

		done, err := store.(driver.BatchReleaser).ReleaseAll(background, ids)

		require.NoError(t, err)
		require.NotContains(t, done, false, "the client does not hold these two any more")
		require.Equal(t, 2, agent.held())
		require.EqualValues(t, 4, agent.txns.Load(), "each of the two transactions is repeated once")
		require.NoError(t, c.Close(background))
	})
}

func TestABatchSaysWhichHoldsItCouldNotRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &distant{fake: newFake()}
		c, store := openDistant(t, agent)
		ids := adaptertest.Acquire(t, store, 3, func(i int) string { return fmt.Sprint("it", i) })
		agent.answer = func() *http.Response { // for the first transaction, and not for the second
			agent.answer = nil
			return answered(http.StatusConflict, api.TxnResponse{Errors: api.TxnErrors{
				{OpIndex: 3, What: "Permission denied: token with AccessorID lacks permission 'key:write'"},
			}}, 1)
		}

		done, err := store.(driver.BatchReleaser).ReleaseAll(background, ids)

		require.ErrorIs(t, err, driver.ErrRefused)
		require.ErrorContains(t, err, "Permission denied")
		require.Equal(t, []bool{true, false, true}, done)
		require.Equal(t, 1, agent.held())
		done, err = store.(driver.BatchReleaser).ReleaseAll(background, ids)
		require.NoError(t, err)
		require.Equal(t, []bool{true, true, true}, done, "the hold is not forgotten")
		require.Zero(t, agent.held())
		require.NoError(t, c.Close(background))
	})
}

func TestABatchSettlesAnAcquisitionWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &distant{fake: newFake()}
		c, store := openDistant(t, agent)
		ids := adaptertest.Acquire(t, store, 2, func(i int) string { return fmt.Sprint("it", i) })
		lost := driver.HoldID{Name: "lost", Acquisition: "acquisition:2"}
		agent.answer = func() *http.Response {
			if agent.txns.Load()%2 == 1 { // the transaction that creates the key
				return nil
			}
			agent.answer = nil
			return answered(http.StatusInternalServerError, "the leader steps down", 1)
		}
		agent.txns.Store(0)
		_, err := store.Acquire(background, driver.Request{HoldID: lost, TTL: time.Minute})
		require.Error(t, err)
		require.NotErrorIs(t, err, driver.ErrRefused)
		free := func() uint64 {
			agent.mu.Lock()
			defer agent.mu.Unlock()
			return agent.pairs["locks/lost"].ModifyIndex
		}
		before := free()

		done, err := store.(driver.BatchReleaser).ReleaseAll(background, append(ids, lost))

		require.NoError(t, err)
		require.Equal(t, []bool{true, true, true}, done)
		require.Zero(t, agent.held())
		require.Greater(t, free(), before, "the request finds another index")
		require.NoError(t, c.Close(background))
	})
}

func TestABatchWithoutAnAnswerReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &distant{fake: newFake()}
		c, store := openDistant(t, agent)
		ids := adaptertest.Acquire(t, store, 2, func(i int) string { return fmt.Sprint("it", i) })
		agent.answer = func() *http.Response {
			return answered(http.StatusConflict, `{"Errors": [{"OpIndex": 99, "What": "failed index check for key "}]}`, 1)
		}
		done, err := store.(driver.BatchReleaser).ReleaseAll(background, ids)
		require.ErrorContains(t, err, "a refusal of no operation")
		require.Equal(t, []bool{false, false}, done)
		agent.answer = func() *http.Response {
			return answered(http.StatusInternalServerError, strings.Repeat("x", 3), 1)
		}
		done, err = store.(driver.BatchReleaser).ReleaseAll(background, ids)
		require.Error(t, err)
		require.Equal(t, []bool{false, false}, done)
		agent.answer = nil
		require.NoError(t, c.Close(background))
	})
}

// The release of the former acquisition was not answered. In one transaction, the repeated release
// would free the key, and the condition of the present hold would fail.
func TestABatchWithTwoAcquisitionsOfANameReleasesTheLastOne(t *testing.T) {
	for _, swap := range []bool{false, true} {
		t.Run(fmt.Sprintf("swapped %v", swap), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &distant{fake: newFake()}
				c, store := openDistant(t, agent)
				former := adaptertest.Acquire(t, store, 1, func(int) string { return "it" })[0]
				agent.mu.Lock()
				pair := *agent.pairs[c.Key("it")]
				agent.change()
				pair.ModifyIndex, pair.Session = agent.index, ""
				agent.pairs[pair.Key] = &pair
				agent.mu.Unlock()
				names := []string{"other", "it"}
				held := adaptertest.Acquire(t, store, 2, func(i int) string { return names[i] })[1]
				ids := []driver.HoldID{former, held}
				if swap {
					ids = []driver.HoldID{held, former}
				}
				done, err := store.(driver.BatchReleaser).ReleaseAll(background, ids)
				require.NoError(t, err)
				require.Equal(t, []bool{true, true}, done)
				require.Equal(t, 1, agent.held(), "the key of another name is held")
				require.NoError(t, c.Close(background))
			})
		})
	}
}

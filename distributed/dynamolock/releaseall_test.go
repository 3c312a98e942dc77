package dynamolock_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// distant is a fake whose answers take a while. It counts requests.
type distant struct {
	fake
	away atomic.Int64 // a [time.Duration]
	sent atomic.Int64
}

func (d *distant) RoundTrip(r *http.Request) (*http.Response, error) {
	d.sent.Add(1)
	time.Sleep(time.Duration(d.away.Load()))
	return d.fake.RoundTrip(r)
}

// held returns how many rows have a holder.
func (f *fake) held() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, row := range f.rows {
		if strings.Contains(row["lock"].S, `"holder"`) {
			n++
		}
	}
	return n
}

// closeDistant closes a client with 1,000 holds, whose requests take 40 ms.
func closeDistant(ctx context.Context, t *testing.T) (d *distant, took time.Duration, err error) {
	d = &distant{fake: fake{rows: make(map[string]row)}}
	c, err := dynamolock.New(dynamodb.New(options("fake", d)), table, dynamolock.WithTTL(time.Hour))
	require.NoError(t, err)
	a := adaptertest.Owner()
	for i := range 1000 {
		require.NoError(t, c.Mutex(fmt.Sprint("it", i)).LockContext(a))
	}
	require.Equal(t, 1000, d.held())
	d.away.Store(int64(40 * time.Millisecond))
	d.sent.Store(0)
	began := time.Now()
	err = c.Close(ctx)
	return d, time.Since(began), err
}

func TestCloseSendsARequestForEachHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, took, err := closeDistant(t.Context(), t)
		require.NoError(t, err)
		t.Logf("closed in %v by %d requests", took, d.sent.Load())
		require.EqualValues(t, 1000, d.sent.Load())
		require.Less(t, took, 3*time.Second, "16 at a time")
		require.Zero(t, d.held())
	})
}

func TestCloseThatEndsEarlyCountsTheHoldsThatItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1010*time.Millisecond)
		defer cancel()
		d, took, err := closeDistant(ctx, t)
		t.Log(err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1010*time.Millisecond, took)
		require.NotContains(t, err.Error(), "\n")
		require.ErrorContains(t, err, fmt.Sprintf("%d of 1000 holds released", 25*16))
		require.Equal(t, 600, d.held())
		time.Sleep(time.Duration(d.away.Load()))
		require.Equal(t, 600-16, d.held(), "the requests under way are carried out, and are not counted as released")
	})
}

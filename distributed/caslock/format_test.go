package caslock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// native is a Format with the fields of a Lease object of Kubernetes. Its programs elect leaders by
// the same rules.
type native struct{}

type nativeObject struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        nativeSpec        `json:"spec"`
}

type nativeSpec struct {
	HolderIdentity       string    `json:"holderIdentity"`
	LeaseDurationSeconds int64     `json:"leaseDurationSeconds"`
	AcquireTime          time.Time `json:"acquireTime,omitzero"`
	RenewTime            time.Time `json:"renewTime"`
	LeaseTransitions     uint64    `json:"leaseTransitions"`
}

func (native) Encode(r caslock.Record) ([]byte, error) {
	if r.Token > 1<<31 {
		return nil, errors.New("no more transitions")
	}
	return json.Marshal(nativeObject{
		Annotations: map[string]string{"write": r.Nonce, "by": r.Identity},
		Spec: nativeSpec{r.Holder, int64((r.Lease + time.Second - 1) / time.Second),
			r.Since, r.Written, max(r.Token, 1) - 1}, // a lock that nobody held yet has token 0
	})
}

func (native) Decode(data []byte) (caslock.Record, error) {
	var o nativeObject
	err := json.Unmarshal(data, &o)
	return caslock.Record{
		Holder: o.Spec.HolderIdentity, Identity: o.Annotations["by"], Nonce: o.Annotations["write"],
		Lease: time.Duration(o.Spec.LeaseDurationSeconds) * time.Second, Token: o.Spec.LeaseTransitions + 1,
		Since: o.Spec.AcquireTime, Written: o.Spec.RenewTime,
	}, err
}

// elect makes another program the leader, with a lease of 15 s.
func elect(s *server, name string, transitions uint64) {
	data, _ := json.Marshal(nativeObject{Spec: nativeSpec{"pod-7", 15, time.Now(), time.Now(), transitions}})
	s.put(name, string(data))
}

func TestAProgramWithNativeFieldsIsExcluded(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s, caslock.WithFormat(native{}), caslock.WithTTL(2500*time.Millisecond)).Mutex("it")
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		var o nativeObject
		require.NoError(t, json.Unmarshal([]byte(s.data("it")), &o))
		require.NotEmpty(t, o.Spec.HolderIdentity)
		require.EqualValues(t, 3, o.Spec.LeaseDurationSeconds)
		require.Zero(t, o.Spec.LeaseTransitions)
		require.NoError(t, l.UnlockContext(owner))
		o = nativeObject{}
		require.NoError(t, json.Unmarshal([]byte(s.data("it")), &o))
		require.Empty(t, o.Spec.HolderIdentity)
	})
}

func TestAProgramWithNativeFieldsExcludes(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s, caslock.WithFormat(native{})).Mutex("it")
		for range 10 { // it renews
			elect(s, "it", 41)
			held, err := l.TryLockContext(adaptertest.Owner())
			require.NoError(t, err)
			require.False(t, held)
			time.Sleep(10 * time.Second)
		}
		info, err := l.Inspect(context.Background())
		require.NoError(t, err)
		require.Equal(t, "pod-7", info.Holders[0].Label)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner)) // it has died
		require.EqualValues(t, 43, adaptertest.Token(t, l, owner))
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestEachRenewalIsWrittenASecondLater(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s, caslock.WithFormat(native{})).Mutex("it")
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		h, err := l.Hold(owner)
		require.NoError(t, err)
		renewed := func() time.Time {
			var o nativeObject
			require.NoError(t, json.Unmarshal([]byte(s.data("it")), &o))
			return o.Spec.RenewTime
		}
		last := renewed()
		for range 5 { // at the same time
			require.NoError(t, h.Extend(owner, time.Minute))
			require.GreaterOrEqual(t, renewed().Sub(last), time.Second)
			last = renewed()
		}
		time.Sleep(17 * time.Second)
		require.NoError(t, h.Extend(owner, time.Minute))
		require.Equal(t, time.Now().UnixNano(), renewed().UnixNano(), "and so has a renewal that comes later")
		require.NoError(t, l.UnlockContext(owner))
		require.Equal(t, time.Now().UnixNano(), renewed().UnixNano(), "a release has the time of the clock")
		require.NoError(t, l.LockContext(owner))
		require.Equal(t, time.Now().UnixNano(), renewed().UnixNano(), "and so has the next acquisition")
	})
}

// padded is a Format of documents that all have the same size.
type padded struct {
	caslock.Format
	size int
}

func (p padded) Encode(r caslock.Record) ([]byte, error) {
	data, err := p.Format.Encode(r)
	return append(data, bytes.Repeat([]byte(" "), p.size-len(data))...), err
}

func TestADocumentOfMaxDataIsTheLongest(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		adaptertest.Pair(t, open(t, s, caslock.WithFormat(padded{caslock.JSON, caslock.MaxData})).Mutex("it"))
		require.Len(t, s.data("it"), caslock.MaxData)
		l := open(t, s, caslock.WithFormat(padded{caslock.JSON, caslock.MaxData + 1})).Mutex("it")
		err := l.LockContext(adaptertest.Owner())
		require.ErrorContains(t, err, "no room: the document of 1 holders would have 16385 bytes, at most 16384 are allowed")
		require.ErrorIs(t, err, lease.ErrRefused)
		s.put("it", s.data("it")+" ")
		require.ErrorIs(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()), locks.ErrForeign)
	})
}

func TestAProgramsVeryLongLeaseIsNoOverflow(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		const years = 290 * 365 * 24 * 60 * 60 // with a hundredth more, a Duration has no room for them
		data, err := json.Marshal(nativeObject{Spec: nativeSpec{"pod-7", years, time.Now(), time.Now(), 1}})
		require.NoError(t, err)
		s.put("it", string(data))
		held, err := open(t, s, caslock.WithFormat(native{})).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
	})
}

func TestAFormatThatCannotWriteRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s, caslock.WithFormat(native{})).Mutex("it")
		elect(s, "it", 1<<31)
		require.ErrorContains(t, l.LockContext(adaptertest.Owner()), `caslock: lock "it": no more transitions`)
	})
}

func TestTheFormatSurvivesTheStore(t *testing.T) {
	at := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, r := range []caslock.Record{
		{Token: 7, Nonce: "x", Written: at},
		{
			Holder: "a:1", Identity: `{"label":"web-1"}`, Lease: time.Hour, Token: 1 << 63,
			Since: at, Written: at, Nonce: "y",
		},
	} {
		data, err := caslock.JSON.Encode(r)
		require.NoError(t, err)
		got, err := caslock.JSON.Decode(data)
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	data, err := caslock.JSON.Encode(caslock.Record{Holder: "a:1", Lease: time.Nanosecond, Identity: "no JSON"})
	require.NoError(t, err)
	require.Contains(t, string(data), `"lease_ms":1`)
	require.False(t, strings.Contains(string(data), "by"))
}

package keyed_test

import (
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/keyed"
)

func TestMultiTellsKeysApartAsEqualityDoes(t *testing.T) {
	type id struct{ n int }
	type blank struct{ a, _ int }
	type inter struct{ v any }
	type pair struct{ a, b string }
	type ints struct{ a, b int }
	other := func() any {
		type id struct{ n int } // another type of the same name
		return id{1}
	}()
	now, p, c := time.Now(), &id{1}, make(chan int)
	keys := []any{
		nil, id{1}, id{2}, other, p, &id{1}, c, make(chan int),
		1, int64(1), uint8(1), "1", 1.0, float32(1), true, 1i,
		0.0, math.Copysign(0, -1), inter{1}, inter{int64(1)}, inter{nil}, inter{"1"}, pair{"a", "b,"},
		pair{"a,1:b", ""},
		pair{"", "a"}, pair{"a", ""}, [2]int{1, 2}, [2]int{2, 1}, now, now.Round(0),
		false, 257, uint16(1), uint16(257), 1 + 1e-12, complex(1, 2), complex(2, 1), complex(11, 1), complex(1, 11),
		pair{"a,b", ""}, [2]int{11, 1}, [2]int{1, 11}, [2]int{-1, 1}, ints{11, 1}, ints{1, 11},
		unsafe.Pointer(p), unsafe.Pointer(&id{1}), inter{id{1}}, inter{other},
		blank{a: 1}, blank{a: 2}, *(*blank)(unsafe.Pointer(&[2]int{1, 7})), "\xff", "\xfe",
		"\x00", "\x00\x00", "a\x00", `"a\x00"`, `"\x00"`, pair{"\x00", "a"}, pair{"\x00a", ""}, [1]string{"\x00"},
	}
	var ls keyed.Mutexes[any]
	for _, a := range keys {
		require.NotContains(t, ls.Of(a).LockKey(), "\x00", "it would end the name of the lock")
		for _, b := range append(keys, p, c, now) {
			want := 2
			if a == b {
				want = 1
			}
			require.Equal(t, a == b, ls.Of(a).LockKey() == ls.Of(b).LockKey(), "%T %#v and %T %#v", a, a, b, b)
			m := locks.Multi(ls.Of(a), ls.Of(b))
			require.NoError(t, m.LockContext(t.Context()))
			require.Equal(t, want, ls.Len(), "%T %#v and %T %#v", a, a, b, b)
			require.NoError(t, m.UnlockContext(t.Context()))
			require.Zero(t, ls.Len())
		}
	}
}

func TestWhatAKeyPointsToIsNotRead(t *testing.T) {
	type object struct{ n int }
	var ls keyed.Mutexes[*object]
	p := new(object)
	l := ls.Of(p)
	l.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := ls.Of(p).UnlockContext(t.Context())
		_, _, _ = fmt.Sprint(err), fmt.Sprint(ls.Of(p)), ls.Of(p).LockKey()
	}()
	time.Sleep(time.Millisecond)
	p.n++ // for the race detector to watch
	l.Unlock()
	<-done
}

func TestAnOwnersUnlockOfAFreeKeyIsNotHeld(t *testing.T) {
	var ls keyed.Mutexes[string]
	ctx := locks.WithOwner(t.Context(), locks.NewOwner())
	for range 2 { // the first one leaves no mutex locked
		require.ErrorIs(t, ls.Of("it").UnlockContext(ctx), locks.ErrNotHeld)
	}
	require.Zero(t, ls.Len())
}

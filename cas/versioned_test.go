package cas_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cas"
)

func requireVersion[T any](t require.TestingT, v *cas.Versioned[T], value T, version uint64) {
	gotValue, gotVersion := v.Load()
	require.Equal(t, value, gotValue)
	require.Equal(t, version, gotVersion)
}

func TestTheZeroVersionedIsReadyToUse(t *testing.T) {
	var v cas.Versioned[string]
	requireVersion(t, &v, "", 0)
	require.False(t, v.CompareAndSwap(1, "no"))
	require.False(t, v.CompareAndSwap(math.MaxUint64, "no"))
	require.True(t, v.CompareAndSwap(0, "a"))
	requireVersion(t, &v, "a", 1)

	var u cas.Versioned[int]
	got, err := u.Update(t.Context(), func(n int) (int, error) { return n + 1, nil })
	require.NoError(t, err)
	require.Equal(t, 1, got)
	requireVersion(t, &u, 1, 1)

	requireVersion(t, cas.NewVersioned("start"), "start", 0)
}

func TestAStaleVersionCommitsNothing(t *testing.T) {
	v := cas.NewVersioned("a")
	_, version := v.Load()
	require.True(t, v.CompareAndSwap(version, "b"))
	require.True(t, v.CompareAndSwap(version+1, "a"), "back to the old value")
	require.False(t, v.CompareAndSwap(version, "c"), "which is not back to the old version")
	requireVersion(t, v, "a", version+2)
	require.EqualValues(t, 3, v.Store("d"))
	requireVersion(t, v, "d", 3)
}

func TestUpdateStartsOverWhenTheVersionHasChanged(t *testing.T) {
	v := cas.NewVersioned(10)
	var saw []int
	got, err := v.Update(t.Context(), func(n int) (int, error) {
		saw = append(saw, n)
		if len(saw) <= 20 {
			v.Store(n + 100) // another writer was faster
			if len(saw) == 20 {
				v.Store(n) // and puts the old value back
			}
		}
		return n + 1, nil
	})
	require.NoError(t, err)
	require.Len(t, saw, 21)
	require.Equal(t, 10, saw[0])
	require.Equal(t, saw[19], saw[20], "ABA")
	require.Equal(t, saw[20]+1, got)
	requireVersion(t, v, got, 22)
}

func TestAnErrorOfTheFunctionCommitsNothing(t *testing.T) {
	v := cas.NewVersioned(10)
	broken := errors.New("broken")
	calls := 0
	got, err := v.Update(t.Context(), func(int) (int, error) { calls++; return 99, broken })
	require.Same(t, broken, err)
	require.Zero(t, got)
	require.Equal(t, 1, calls)
	requireVersion(t, v, 10, 0)

	require.Panics(t, func() {
		_, _ = v.Update(t.Context(), func(int) (int, error) { panic(broken) })
	})
	requireVersion(t, v, 10, 0)
}

func TestUpdateChecksItsContextBeforeEachTry(t *testing.T) {
	v := cas.NewVersioned(10)
	cause := errors.New("shutdown")
	ctx, cancel := context.WithCancelCause(t.Context())
	calls := 0
	got, err := v.Update(ctx, func(n int) (int, error) {
		calls++
		v.Store(n + 1)
		if calls == 3 {
			cancel(cause)
		}
		return 99, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	require.Zero(t, got)
	require.Equal(t, 3, calls)
	requireVersion(t, v, 13, 3)

	_, err = v.Update(ctx, func(int) (int, error) { t.Error("called"); return 0, nil })
	require.ErrorIs(t, err, context.Canceled)
	requireVersion(t, v, 13, 3)
}

func TestNilArgumentsOfUpdateAreErrors(t *testing.T) {
	var v cas.Versioned[int]
	var none context.Context
	_, err := v.Update(none, func(int) (int, error) { t.Error("called"); return 0, nil })
	require.ErrorIs(t, err, locks.ErrNilContext)
	_, err = v.Update(t.Context(), nil)
	require.ErrorIs(t, err, locks.ErrNilFunc)
	requireVersion(t, &v, 0, 0)
}

func TestAVersionedBehavesAsItsModelDoes(t *testing.T) {
	broken := errors.New("broken")
	rapid.Check(t, func(t *rapid.T) {
		var v cas.Versioned[int]
		var value int
		var version uint64
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { requireVersion(t, &v, value, version) },
			"store": func(t *rapid.T) {
				value = rapid.Int().Draw(t, "value")
				version++
				require.Equal(t, version, v.Store(value))
			},
			"swap": func(t *rapid.T) {
				expected := rapid.Uint64Range(0, version+1).Draw(t, "version")
				next := rapid.Int().Draw(t, "value")
				require.Equal(t, expected == version, v.CompareAndSwap(expected, next))
				if expected == version {
					value, version = next, version+1
				}
			},
			"update": func(t *rapid.T) {
				next, fails := rapid.Int().Draw(t, "value"), rapid.Bool().Draw(t, "fails")
				_, err := v.Update(context.Background(), func(n int) (int, error) {
					require.Equal(t, value, n)
					if fails {
						return next, broken
					}
					return next, nil
				})
				if fails {
					require.Same(t, broken, err)
				} else {
					value, version = next, version+1
				}
			},
		})
	})
}

func TestNoUpdateIsLost(t *testing.T) {
	const parties, each = 8, 1_000
	type account struct{ debit, credit int } // two variables made one
	var v cas.Versioned[account]
	var wg sync.WaitGroup
	for range parties {
		wg.Go(func() {
			for range each {
				if a, _ := v.Load(); a.debit != a.credit {
					t.Error("half a change")
				}
				_, err := v.Update(t.Context(), func(a account) (account, error) {
					return account{a.debit + 1, a.credit + 1}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	requireVersion(t, &v, account{parties * each, parties * each}, parties*each)
}

func TestAnUpdateAllocatesOnce(t *testing.T) {
	var v cas.Versioned[int]
	ctx := t.Context()
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		_, _ = v.Update(ctx, func(n int) (int, error) { return n + 1, nil })
	}))
	require.Zero(t, testing.AllocsPerRun(100, func() { v.Load() }))
	require.Zero(t, testing.AllocsPerRun(100, func() { v.CompareAndSwap(math.MaxUint64-1, 1) }))
}

package zklock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func TestSequencesAreWhatFollowsTheLastKind(t *testing.T) {
	for name, want := range map[string]string{
		"_c_0-lock-0000000001":             "0000000001",
		"lock-0000000001":                  "0000000001",
		"lock-lock-0000000002":             "0000000002",
		"lock--2147483648":                 "-2147483648",
		"lock-1":                           "",
		"lock-00000000001":                 "",
		"lock-000000000x":                  "",
		"lock-":                            "",
		"0000000001":                       "",
		"lock-0000000001-lease-0000000002": "",
	} {
		seq, ok := sequence(name, lockName)
		require.Equal(t, want, seq, name)
		require.Equal(t, want != "", ok, name)
	}
}

func TestStandingFindsTheNearestWhoExcludes(t *testing.T) {
	const (
		w1, r2, r3, w4, r5 = "_c_a-__WRIT__0000000001", "_c_b-__READ__0000000002", "_c_c-__READ__0000000003",
			"_c_d-__WRIT__0000000004", "_c_e-__READ__0000000005"
		down = "_c_f-__READ__0000000001" // of who has w1
	)
	all := []string{r5, "foo", w4, r3, "0000000000", r2, w1, "lock-x"}
	for own, want := range map[string]string{w1: "", r2: w1, r3: w1, w4: r3, r5: w4} {
		kind := reading
		if own == w1 || own == w4 {
			kind = writing
		}
		before, n, err := standing(all, own, kind)
		require.NoError(t, err)
		require.Equal(t, want, before, own)
		require.Equal(t, map[string]int{w1: 0, r2: 1, r3: 1, w4: 3, r5: 2}[own], n, own)
	}
	before, n, err := standing([]string{w4, down}, w4, writing)
	require.NoError(t, err)
	require.Equal(t, down, before)
	require.Equal(t, 1, n)
	before, n, err = standing([]string{w4, down}, down, reading)
	require.NoError(t, err)
	require.Empty(t, before)
	require.Zero(t, n)

	locked := []string{"x-lock-0000000010", "_c_0123456789abcdef0123456789abcdef-lock-0000000002", "lock-0000000003", "foo"}
	for own, want := range map[string]string{locked[1]: "", locked[2]: locked[1], locked[0]: locked[2]} {
		before, n, err := standing(locked, own, mutex)
		require.NoError(t, err)
		require.Equal(t, want, before, own)
		require.Equal(t, map[string]int{locked[1]: 0, locked[2]: 1, locked[0]: 2}[own], n, own)
	}
	_, _, err = standing(locked, "lock-0000000004", mutex)
	require.ErrorIs(t, err, errNoOwn)
	_, _, err = standing(append(locked, w1), locked[1], mutex)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, _, err = standing(append(all, locked[0]), w1, writing)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, _, err = standing([]string{"lock--2147483648", "lock-2147483647"}, "lock--2147483648", mutex)
	require.Error(t, err, "it would overtake who holds the lock")
}

func TestHoldersAreTheFirstOrTheReadersBeforeAWriter(t *testing.T) {
	w1, r0, r2, w3, r4 := "__WRIT__0000000001", "__READ__0000000000", "__READ__0000000002", "__WRIT__0000000003", "__READ__0000000004"
	require.ElementsMatch(t, []string{w1}, holders([]string{r2, w1, w3, r4}))
	require.ElementsMatch(t, []string{r0, r2}, holders([]string{r2, r0, w3, r4}))
	require.ElementsMatch(t, []string{r4}, holders([]string{r4}))
	require.ElementsMatch(t, []string{"lock-0000000001"}, holders([]string{"lock-0000000002", "foo", "lock-0000000001"}))
	require.Empty(t, holders([]string{"foo"}))
}

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
		seq, ok := sequence(name, lockPrefix)
		require.Equal(t, want, seq, name)
		require.Equal(t, want != "", ok, name)
	}
}

func TestStandingFindsTheNearestThatExcludes(t *testing.T) {
	const (
		w1, r2, r3, w4, r5 = "_c_a-__WRIT__0000000001", "_c_b-__READ__0000000002", "_c_c-__READ__0000000003",
			"_c_d-__WRIT__0000000004", "_c_e-__READ__0000000005"
		down = "_c_f-__READ__0000000001" // of the owner of w1
	)
	all := []string{r5, "foo", w4, r3, "0000000000", r2, w1, "lock-x"}
	for own, want := range map[string]string{w1: "", r2: w1, r3: w1, w4: r3, r5: w4} {
		kind := readMode
		if own == w1 || own == w4 {
			kind = writeMode
		}
		before, err := standing(all, own, kind)
		require.NoError(t, err)
		require.Equal(t, want, before, own)
	}
	before, err := standing([]string{w4, down}, w4, writeMode)
	require.NoError(t, err)
	require.Equal(t, down, before)
	before, err = standing([]string{w4, down}, down, readMode)
	require.NoError(t, err)
	require.Empty(t, before)

	locked := []string{
		"x-lock-0000000010", "_c_0123456789abcdef0123456789abcdef-lock-0000000002", "lock-0000000003", "foo",
	}
	for own, want := range map[string]string{locked[1]: "", locked[2]: locked[1], locked[0]: locked[2]} {
		before, err := standing(locked, own, mutexMode)
		require.NoError(t, err)
		require.Equal(t, want, before, own)
	}
	_, err = standing(locked, "lock-0000000004", mutexMode)
	require.ErrorIs(t, err, errNoOwn)
	_, err = standing(append(locked, w1), locked[1], mutexMode)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, err = standing(append(all, locked[0]), w1, writeMode)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, err = standing([]string{"lock--2147483648", "lock-2147483647"}, "lock--2147483648", mutexMode)
	require.Error(t, err, "it would overtake who holds the lock")
}

func TestHoldersAreTheFirstOrTheFirstReaders(t *testing.T) {
	const (
		r0, w1, r1 = "__READ__0000000000", "__WRIT__0000000001", "__READ__0000000001"
		r2, w3, r4 = "__READ__0000000002", "__WRIT__0000000003", "__READ__0000000004"
	)
	require.ElementsMatch(t, []string{w1}, holders([]string{r2, w1, w3, r4}))
	require.ElementsMatch(t, []string{w1, r1}, holders([]string{r2, w1, w3, r1}), "of one owner")
	require.ElementsMatch(t, []string{r0, r2}, holders([]string{r2, r0, w3, r4}))
	require.ElementsMatch(t, []string{r4}, holders([]string{r4}))
	locked := []string{"lock-0000000002", "foo", "lock-0000000001"}
	require.ElementsMatch(t, []string{"lock-0000000001"}, holders(locked))
	require.Empty(t, holders([]string{"foo"}))
}

func TestNamesBeyondTheBasicPlaneAreRefused(t *testing.T) {
	for _, name := range []string{"\U00010000", "orders/\U0001f512", "\U0010ffff"} {
		_, err := cleanName("", name)
		require.ErrorContains(t, err, "beyond U+FFFF", name)
		_, err = cleanName("", "/ns"+name)
		require.ErrorContains(t, err, "beyond U+FFFF", name)
	}
	_, err := cleanName("", "zamek-\u9501")
	require.NoError(t, err)
}

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachPriceIsLookedUpOnce(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "8000 answers, 3 lookups\n", out.String())
}

func TestAForgottenOrFailedPriceIsFetchedAgain(t *testing.T) {
	calls := 0
	c := &Cache{lookUp: func(context.Context, string) (int, error) {
		if calls++; calls == 1 {
			return 0, errors.New("no connection")
		}
		return calls, nil
	}}
	_, err := c.Price(t.Context(), "nut")
	require.EqualError(t, err, "no connection")
	price, err := c.Price(t.Context(), "nut")
	require.NoError(t, err)
	require.Equal(t, 2, price)
	c.Forget("nut")
	price, err = c.Price(t.Context(), "nut")
	require.NoError(t, err)
	require.Equal(t, 3, price)
}

package main

import (
	"testing"

	"github.com/jucgo/locks/lockstest/explore"
)

func TestNoScheduleChargesMoreThanTheWalletHas(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var w Wallets
		w.balances.Store(userID(1), 10)
		w.balances.Store(userID(2), 10)
		paid := [2]bool{}
		for i := range paid {
			x.Go("charges", func() { paid[i] = w.Charge(x.Context(), 1, 10) == nil })
		}
		x.Go("charges another", func() { _ = w.Charge(x.Context(), 2, 10) })
		x.Wait()
		x.Check(paid[0] != paid[1], "the payments of one balance are %v", paid)
		x.Check(w.users.Len() == 0, "%d locks are left", w.users.Len())
	}, explore.Preemptions(1))
}

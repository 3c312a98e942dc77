package transfers

import (
	"testing"

	"github.com/jucgo/locks/lockstest/explore"
)

// crossing makes two transfers in opposite directions under all schedules.
func crossing(transfer func(x *explore.X, from, to *Account, amount int)) func(x *explore.X) {
	return func(x *explore.X) {
		a, b := &Account{balance: 10}, &Account{balance: 10}
		x.Go("a to b", func() { transfer(x, a, b, 1) })
		x.Go("b to a", func() { transfer(x, b, a, 2) })
		x.Wait()
		x.Check(a.balance == 11 && b.balance == 9, "the balances are %d and %d", a.balance, b.balance)
	}
}

func TestNaiveTransfersDeadlockUnderSomeSchedule(t *testing.T) {
	explore.Run(t, crossing(func(x *explore.X, from, to *Account, amount int) {
		_ = Naive(x.Context(), from, to, amount)
	}), explore.Expect(explore.Deadlock))
}

func TestOrderedTransfersAreRightUnderAllSchedules(t *testing.T) {
	explore.Run(t, crossing(func(x *explore.X, from, to *Account, amount int) {
		if err := Ordered(x.Context(), from, to, amount); err != nil {
			x.Errorf("%v", err)
		}
	}))
}

package fourlines

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/lockstest/explore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//lab:show

// deposits has two goroutines deposit one each, and returns the balance.
func deposits(x *explore.X, deposit func(*Account, int)) int {
	var a Account
	x.Go("Ann", func() { deposit(&a, 1) })
	x.Go("Bob", func() { deposit(&a, 1) })
	x.Wait()
	return a.Balance()
}

func TestTwoDepositsAreTwo(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		balance := deposits(x, (*Account).Deposit)
		x.Check(balance == 2, "the balance is %d", balance)
	}, explore.Expect(explore.Failure)) // so the test passes if the mistake is found
}

//lab:end

func TestTwoDepositsAtOnceAreTwo(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		balance := deposits(x, (*Account).DepositAtOnce)
		x.Check(balance == 2, "the balance is %d", balance)
	}, explore.Preemptions(all))
}

// all is more preemptions than there are operations.
const all = 20

// The lab reads the number that the test logs.
func TestAllSchedulesAreCounted(t *testing.T) {
	lost := 0
	explore.Run(t, func(x *explore.X) {
		if deposits(x, (*Account).Deposit) < 2 {
			lost++
		}
	}, explore.Preemptions(all))
	if lost > 0 { // which it is in the process whose locks announce their operations
		t.Logf("lost in %d", lost)
	}
}

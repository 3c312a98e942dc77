// Package fourlines has the program of a chapter of the lab, "All schedules of four lines". Its
// tests explore the program. They stand in a package of their own, so that the lab can have them
// built with the tag lockexplore in a short time.
package fourlines

import "github.com/jucgo/locks/fair"

//lab:show

// Account has a lock around each access.
type Account struct {
	mu      fair.Mutex
	balance int
}

// Balance returns what is in the account.
func (a *Account) Balance() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.balance
}

func (a *Account) set(balance int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance = balance
}

// Deposit is wrong: the lock is released between its two lines. Two goroutines have four lines.
func (a *Account) Deposit(amount int) {
	was := a.Balance()
	a.set(was + amount)
}

// DepositAtOnce is right: nothing comes between its read and its write.
func (a *Account) DepositAtOnce(amount int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance += amount
}

//lab:end

// Package second locks ledgers before accounts.
package second

import "example.com/testdata/apart/base"

func Audit(l *base.Ledger, a *base.Accounts) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	add(a, l.N)
}

func add(a *base.Accounts, n int) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.N += n
}

// Package first locks accounts before ledgers.
package first

import "example.com/testdata/apart/base"

func Book(a *base.Accounts, l *base.Ledger) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.N += a.N
}

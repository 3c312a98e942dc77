// Package apart imports two packages that acquire two locks in opposite orders, and do not know of
// each other.
package apart

import (
	"example.com/testdata/apart/base"
	"example.com/testdata/apart/first"
	"example.com/testdata/apart/second" // found: lockorder
)

func Run(a *base.Accounts, l *base.Ledger) {
	go first.Book(a, l)
	second.Audit(l, a)
}

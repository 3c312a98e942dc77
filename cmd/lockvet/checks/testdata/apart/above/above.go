// Package above imports the same packages as apart, and apart, which has the report.
package above

import (
	"example.com/testdata/apart"
	"example.com/testdata/apart/base"
	"example.com/testdata/apart/first"
	"example.com/testdata/apart/second"
)

func Run(a *base.Accounts, l *base.Ledger) {
	apart.Run(a, l)
	first.Book(a, l)
	second.Audit(l, a)
}

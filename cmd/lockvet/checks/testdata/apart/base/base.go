// Package base has two locks, which other packages acquire.
package base

import "sync"

type Accounts struct {
	Mu sync.Mutex
	N  int
}

type Ledger struct {
	Mu sync.Mutex
	N  int
}

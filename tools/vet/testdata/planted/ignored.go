package planted // want ST1000

import "sync"

func Ignored(ok bool, mu *sync.Mutex) {
	//lint:ignore S1002 reason
	if ok == true {
		mu.Lock()
		mu.Lock() //lockvet:ignore doublelock reason
		mu.Unlock()
	}
	//lint:ignore S1* reason
	if ok == true {
		return
	}
	//lint:ignore ST1* pattern-without-a-finding
	if ok {
		return
	}
	//lint:ignore S1003 reason // want staticcheck
	if ok == true { // want S1002
		return
	}
	//lint:ignore SA4000 disabled
	if ok {
		return
	}
}

//lint:ignore S1002
func WithoutReason() {} // want compile

//lint:ignore U1000 reason
func ignoredUnused() {}

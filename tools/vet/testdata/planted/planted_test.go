package planted

import "testing"

func TestUse(t *testing.T) {
	if !usedByTheTest() {
		go t.Fatal() // want testinggoroutine
	}
}

func unusedInTheTest() { // want U1000
}

func UsedByTheOtherTest() {}

package planted_test

import (
	"testing"

	"example.com/planted"
)

func TestOther(t *testing.T) { planted.UsedByTheOtherTest() }

func unusedInTheOtherTest() { // want U1000
}

package mistake

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// lives is set in the process that has the part of the lives.
const lives = "LOCKS_MISTAKE_LIVES"

func TestTheRuleIsFoundBehindALongLine(t *testing.T) {
	if os.Getenv(lives) != "" {
		fmt.Println(strings.Repeat("x", 1<<17))
		fmt.Println("the rule is broken")
		return
	}
	t.Setenv(lives, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !(Mistake{Life: "^" + t.Name() + "$"}).find(t, self, "-test.count=1", "the rule") {
		t.Error("not found")
	}
}

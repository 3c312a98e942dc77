//go:build simulation

package caslock_test

import "testing"

func TestLivesFindMistakes(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.Find)
	}
}

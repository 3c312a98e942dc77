//go:build simulation

package leasetest

import "testing"

func TestLivesFindMistakes(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.Find)
	}
}

//go:build simulation

package redlock_test

import "testing"

func TestLivesFindMistakes(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.Name, m.Find)
	}
}

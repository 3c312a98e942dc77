package zklock

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// The ZooKeeper client counts its requests to 2³¹, and then from 0.
func TestAnAnswerToRequestZeroEndsNoSession(t *testing.T) {
	s := &session{c: new(core), granted: true}
	l := &link{s: s}
	l.greeted.Store(true)
	answerTo := func(number uint32) []byte {
		answer := make([]byte, head)
		binary.BigEndian.PutUint32(answer, head-atNumber)
		binary.BigEndian.PutUint32(answer[atNumber:], number)
		return answer
	}
	l.observe(answerTo(0))
	require.False(t, s.ended)
	l.farewell.Store(7)
	l.observe(answerTo(7))
	require.True(t, s.ended)
}

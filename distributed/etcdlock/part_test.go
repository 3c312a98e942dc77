package etcdlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALateReleaseOfAFormerReaderKeepsTheKey(t *testing.T) {
	st := &store{c: newCore(nil, time.Second), kind: reading}
	defer st.c.stop()
	m := &place{st: st, state: holding, session: &session{}, gone: true}
	former, present := &place{st: st, master: m}, &place{st: st, master: m}
	m.reader = present
	released, err := st.part(t.Context(), former)
	require.NoError(t, err)
	require.False(t, released.Held)
	require.True(t, present.isHeld())
}

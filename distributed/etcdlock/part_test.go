package etcdlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
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

// A key that a late request may put or delete yet is not free when it is gone, and still lost.
func TestTheEndOfAReaderWhoseKeyIsGoneIsALoss(t *testing.T) {
	st := &store{c: newCore(nil, time.Second), kind: reading, lost: func(driver.HoldID, error) {}}
	defer st.c.stop()
	m := &place{st: st, state: holding, session: &session{c: st.c, life: t.Context()}, doubt: true}
	m.reader = &place{st: st, master: m}
	reader := m.reader
	m.die()
	require.True(t, m.is(burnt, burnt))
	released, err := st.part(t.Context(), reader)
	require.NoError(t, err)
	require.False(t, released.Held)
}

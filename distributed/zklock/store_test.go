package zklock

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnAcquisitionThatWasLeftAsksNothing(t *testing.T) {
	c := new(core)
	c.life, c.end = context.WithCancelCause(t.Context())
	defer c.end(nil)
	st := newStore(c, queue{mutexMode})
	a := st.begin(t.Context(), "/it", "acquisition")
	require.NoError(t, st.Leave(t.Context(), "/it", "acquisition"))
	reply, err := a.ask(func(context.Context) (bool, error) {
		t.Error("it asks the server")
		return false, nil
	}, time.Second)
	require.NoError(t, err)
	require.False(t, reply.Held)
}

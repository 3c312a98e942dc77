package series

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func lengths() *Series[int] { return with(func(label string) int { return len(label) }) }

func with(make func(label string) int) *Series[int] {
	s := new(Series[int])
	s.Init(make)
	return s
}

func TestAllNamesAboveTheLimitShareALabel(t *testing.T) {
	s := lengths()
	for i := range Max {
		label, _ := s.Of(strconv.Itoa(i))
		require.Equal(t, strconv.Itoa(i), label)
	}
	label, value := s.Of("late")
	require.Equal(t, Other, label)
	require.Equal(t, len(Other), value)
	label, value = s.Of("17")
	require.Equal(t, "17", label, "an early name keeps its label")
	require.Equal(t, 2, value)
}

func TestANameThatIsNotUTF8HasTheCommonLabel(t *testing.T) {
	label, _ := lengths().Of("\xff")
	require.Equal(t, Other, label)
}

func TestAValueIsMadeOnce(t *testing.T) {
	made := 0
	s := with(func(string) int { made++; return made })
	s.Of("a")
	s.Of("a")
	require.Equal(t, 1, made)
}

func TestNamesOfTheCommonLabelAreAddedUp(t *testing.T) {
	r := record.New(record.Options{})
	var oldest time.Time
	for _, name := range []string{"\xff", "\xfe", "a"} {
		l := r.Wrap(name, new(reentrant.Mutex))
		require.NoError(t, l.LockContext(context.Background()))
		defer l.UnlockContext(context.Background())
		if oldest.IsZero() {
			oldest = r.Holds()[0].Since
		}
	}
	stats, since := map[string]record.Stats{}, map[string]time.Time{}
	lengths().Each(r, func(s record.Stats, t time.Time) { stats[s.Lock], since[s.Lock] = s, t })
	require.Len(t, stats, 2)
	require.EqualValues(t, 2, stats[Other].Acquired)
	require.EqualValues(t, 2, stats[Other].Held)
	require.EqualValues(t, 1, stats["a"].Held)
	require.Equal(t, oldest, since[Other])
}

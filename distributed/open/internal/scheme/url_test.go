package scheme

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAStoreThatIsNotImportedIsNamed(t *testing.T) {
	for _, s := range stores {
		err := new(Opening).Parse(s.scheme + "://user:secret@host/1")
		require.ErrorIs(t, err, ErrURL)
		require.ErrorContains(t, err, `import _ "github.com/jucgo/locks/distributed/open`+s.path())
		require.NotContains(t, err.Error(), "secret")
	}
}

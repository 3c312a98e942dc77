package keytext_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/keytext"
)

// silent is an error whose Error must not be called.
type silent struct{ _ []int }

func (silent) Error() string { panic("an error's Error must not be called") }

func TestAnErrorOfAPanicIsReturnedAsItIs(t *testing.T) {
	errBroken := errors.New("broken")
	require.Equal(t, errBroken, keytext.Panic(errBroken))
	require.Equal(t, silent{}, keytext.Panic(silent{}))
}

func TestAPanicsValueIsDescribedWithoutItsMethods(t *testing.T) {
	for want, value := range map[string]any{
		"broken":                     "broken",
		"keytext_test.loud(3)":       loud(3),
		"float64(1.5)":               1.5,
		"bool(true)":                 true,
		"a *keytext_test.session":    &session{password: "secret"},
		"a keytext_test.account":     account{Tenant: "secret"},
		"a map[string]int":           map[string]int{"secret": 1},
		"a [1]string":                [1]string{"secret"},
		`keytext_test.named("a\nb")`: named("a\nb"),
	} {
		require.EqualError(t, keytext.Panic(value), want)
	}
}

// named is a string that is not of type string.
type named string

func (named) String() string { panic("a value's String must not be called") }

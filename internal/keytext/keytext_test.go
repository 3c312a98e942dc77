package keytext_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/keytext"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type loud int

func (loud) String() string { panic("a key's String must not be called") }

type account struct {
	Tenant string
	id     int
	owner  *session
	any    any
}

type session struct{ password string }

func (*session) Format(fmt.State, rune) { panic("a key's Format must not be called") }

func TestAKeyIsDescribedByItsValue(t *testing.T) {
	for key, want := range map[any]string{
		"ann":                       `"ann"`,
		"a\"b\n":                    `"a\"b\n"`,
		7:                           "7",
		loud(3):                     "3",
		uint8(255):                  "255",
		true:                        "true",
		1.5:                         "1.5",
		2 + 1i:                      "(2+1i)",
		[2]int{4, 5}:                "[4 5]",
		time.Second:                 "1000000000",
		account{Tenant: "x", id: 4}: `{Tenant:"x" id:4 owner:*keytext_test.session(0x0) any:nil}`,
	} {
		require.Equal(t, want, keytext.Of(key))
	}
	require.Equal(t, "nil", keytext.Of(nil))
}

func TestAPointerIsDescribedByTypeAndAddress(t *testing.T) {
	s := &session{password: "secret"}
	require.Equal(t, fmt.Sprintf("*keytext_test.session(%#x)", addressOf(s)), keytext.Of(s))
	text := keytext.Of(account{owner: s, any: s})
	require.NotContains(t, text, "secret")
	require.Contains(t, text, fmt.Sprintf("any:*keytext_test.session(%#x)", addressOf(s)))
	require.Regexp(t, `^chan int\(0x[0-9a-f]+\)$`, keytext.Of(make(chan int)))
}

func addressOf(s *session) uintptr { return reflect.ValueOf(s).Pointer() }

func TestALongKeyIsCut(t *testing.T) {
	for _, key := range []any{strings.Repeat("锁", 1<<20), [1 << 16]int{}, [64]string{}} {
		text := keytext.Of(key)
		require.LessOrEqual(t, len(text), 130)
		require.True(t, utf8.ValidString(text), "%q", text)
	}
}

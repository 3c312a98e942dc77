package terminal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/terminal"
)

func TestTheFirstVariableThatIsSetDecidesTheLanguage(t *testing.T) {
	for _, c := range []struct {
		all, messages, lang string
		want                bool
	}{
		{"", "", "", false}, {"", "", "zh_CN.UTF-8", true}, {"C", "", "zh_CN.UTF-8", false},
		{"", "zh-Hans", "en_US.UTF-8", true}, {"ZH", "", "", true}, {"", "", "zha", false},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		require.Equal(t, c.want, terminal.Chinese(func(name string) string { return env[name] }), env)
	}
}

func TestAChineseCharacterHasTwoColumns(t *testing.T) {
	require.Equal(t, 3+2*2+2, terminal.Columns("run锁的，"))
}

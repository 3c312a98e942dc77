package lab

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheEnvironmentDecidesTheLanguage(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want Lang
	}{
		"nothing is set":      {nil, English},
		"a Chinese LANG":      {map[string]string{"LANG": "zh_CN.UTF-8"}, Chinese},
		"traditional":         {map[string]string{"LANG": "zh-Hant"}, Chinese},
		"the language alone":  {map[string]string{"LANG": "zh"}, Chinese},
		"another language":    {map[string]string{"LANG": "zho_Foo"}, English},
		"LC_ALL comes first":  {map[string]string{"LC_ALL": "C", "LC_MESSAGES": "zh_CN", "LANG": "zh_CN"}, English},
		"then LC_MESSAGES":    {map[string]string{"LC_MESSAGES": "zh_CN", "LANG": "en_US"}, Chinese},
		"an empty one is not": {map[string]string{"LC_ALL": "", "LANG": "zh_CN"}, Chinese},
	} {
		assert.Equal(t, c.want, LangOf(func(name string) string { return c.env[name] }), name)
	}
}

func TestATextIsFormattedInBothLanguages(t *testing.T) {
	text := T("%s waits for %s", "%[1]s 等待 %[2]s")
	require.Equal(t, Text{"Ann waits for lock", "Ann 等待锁"}, text.With(Same("Ann"), T("lock", "锁")))
	require.Equal(t, Text{"holder waits for A", "持有者等待 A"}, text.With(T("holder", "持有者"), "A"))
	require.Equal(t, Text{"a and b", "a、b"}, Join([]Text{Same("a"), Same("b")}, T(" and ", "、")))
}

func TestAFailureIsToldInBothLanguages(t *testing.T) {
	cause := errors.New("disk full")
	err := error(Fail(T("writing %s: %v", "写入 %s 时出错：%v"), "page", cause))
	outer := Fail(T("the page: %v", "网页：%v"), err)
	require.ErrorIs(t, outer, cause)
	require.Equal(t, "the page: writing page: disk full", outer.Error())
	require.Equal(t, "网页：写入 page 时出错：disk full", Explain(outer, Chinese))
	require.Equal(t, "disk full", Explain(cause, Chinese))
}

func TestJSONHasTheEnglishText(t *testing.T) {
	data, err := json.Marshal(T("lock", "锁"))
	require.NoError(t, err)
	require.Equal(t, `"lock"`, string(data))
	var back Text
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, Same("lock"), back)
}

func TestAChineseCharacterTakesTwoColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "lock": 4, "锁": 2, "等待 2 ms": 9, "（锁）": 6, "，": 2, "░█·": 3, "▲": 1} {
		assert.Equal(t, want, Columns(text), text)
	}
}

func TestChineseWordsAndOthersHaveASpaceBetween(t *testing.T) {
	for text, want := range map[string]string{
		"等待lock2次":         "等待 lock2 次",
		"等待 锁":             "等待锁",
		"用`Lock`加锁":        "用 `Lock` 加锁",
		"`a  b`，再 `c`":     "`a  b`，再 `c`",
		"结果： 5 % 的时间":      "结果：5 % 的时间",
		"sync.Mutex（1 µs）": "sync.Mutex（1 µs）",
	} {
		assert.Equal(t, want, Spaced(text), text)
		assert.Equal(t, want, Spaced(want), "it stays")
	}
}

func TestLinesOfAChineseParagraphAreJoined(t *testing.T) {
	require.Equal(t, "第一行，第二行用 Go 写。接着\n\n另一段", Joined("第一行，\n第二行用\nGo 写。\n接着\n\n另一\n段"))
	require.Equal(t, "one two", Joined("one\ntwo"))
}

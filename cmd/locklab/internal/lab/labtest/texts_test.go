package labtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

func TestTheStyleOfChineseIsKept(t *testing.T) {
	for _, good := range []string{"锁", "用 `Lock` 加锁，再释放。", "等待 2 ms，共 3 次", "{{n .a}} 次，共 {{n .b}} 个",
		"goroutine 在等待",
		"占 5 % 的时间", "（见 `a.b`）", "两个 goroutine：Ann 与 Bob", "等待 %s", "先读、后写；再试？"} {
		assert.Empty(t, Style(good), good)
	}
	for name, bad := range map[string]string{
		"no space before letters": "用Lock加锁", "no space before digits": "等待2 ms",
		"no space behind code":    "`Lock`加锁",
		"no space beside figures": "共{{n .a}}次", "a comma": "加锁,再释放", "a colon": "结果: 好", "a full stop": "已释放.",
		"brackets": "锁(公平)", "a space beside a mark": "加锁， 再释放", "a space inside words": "加 锁",
	} {
		assert.NotEmpty(t, Style(bad), name)
	}
}

func TestFiguresVerbsAndCodeAreInBothTexts(t *testing.T) {
	for en, zh := range map[string]string{"%s has %d of %d": "%[3]d 之中 %[1]s 有 %[2]d", "see `a.b`, 3 times": "3 次，见 `a.b`",
		"{{n .a}} of {{times .b}}": "{{times .b}}，{{n .a}}"} {
		assert.Equal(t, insertions(en), insertions(zh))
	}
	for en, zh := range map[string]string{"%s and %d": "%s", "%s, %s": "%[2]s，%[2]s", "takes 3": "要 4", "`a`": "`b`",
		"{{n .a}}": "{{.a}}", "%d": "%s"} {
		assert.NotEqual(t, insertions(en), insertions(zh), en)
	}
}

func TestATermHasItsOwnWord(t *testing.T) {
	assert.Empty(t, Terms(lab.Text{EN: "a reentrant lock, spin.Mutex and `deadlock.Find`", ZH: "可重入锁、spin.Mutex 和 `deadlock.Find`"}))
	assert.NotEmpty(t, Terms(lab.Text{EN: "The lease is over.", ZH: "期限已过。"}))
	assert.NotEmpty(t, Terms(lab.Text{EN: "The wake-up", ZH: "伪唤醒"}))
	assert.Empty(t, Terms(lab.Text{EN: "The wake-up", ZH: "虚假唤醒"}))
}

// recorder collects what a test complains about.
func translated(t *testing.T, record, source string) (failed bool) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n\nvar text = "+source+"\n"), 0o600))
	if record != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "record"), []byte(record), 0o600))
	}
	return len(Faults(t, filepath.Join(dir, "record"), dir)) > 0
}

func TestAChangeOfOneLanguageIsSeen(t *testing.T) {
	record := Record([]lab.Text{{EN: "It waits.", ZH: "它在等待。"}})
	assert.False(t, translated(t, record, `lab.T("It waits.", "它在等待。")`))
	for name, source := range map[string]string{
		"the English text changed":     `lab.T("It waits long.", "它在等待。")`,
		"the translation changed":      `lab.T("It waits.", "它等待。")`,
		"the translation is missing":   `lab.T("It waits.")`,
		"the translation is empty":     `lab.T("It waits.", "")`,
		"a figure is in one text only": `lab.T("It waits 3 ms.", "它在等待。")`,
	} {
		assert.True(t, translated(t, record, source), name)
	}
}

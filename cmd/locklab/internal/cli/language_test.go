package cli

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

func TestTheCommandSpeaksChinese(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := called(t, "run", "race", "giving-up", "pool", "-quick", "-lang", "zh", "-o", page)
	require.Equal(t, exitOK, code, stdout+stderr)
	require.Contains(t, stdout, "3 个场景中有 3 个与所教相符")
	require.Contains(t, stderr, "竞态，以及它丢失的更新")
	lanes := regexp.MustCompile(`^ {6}\S.*[·░▒█]`)
	ends := map[int]bool{}
	for line := range strings.Lines(strings.ReplaceAll(stdout, page, "page")) {
		line = strings.TrimSuffix(line, "\n")
		require.LessOrEqual(t, lab.Columns(line), 80, line)
		if lanes.MatchString(line) && !strings.Contains(line, "   ░") {
			ends[lab.Columns(line)] = true
		}
	}
	require.Equal(t, map[int]bool{80: true}, ends, "the lanes of every picture end at the same column")
}

func TestTheEnvironmentChoosesTheLanguage(t *testing.T) {
	t.Setenv("LC_ALL", "zh_CN.UTF-8")
	_, stdout, _ := called(t, "list")
	require.Contains(t, stdout, "为什么要加锁")
	_, stdout, _ = called(t, "list", "-lang", "en")
	require.Contains(t, stdout, "Why lock at all", "the flag comes first")
}

func TestWrongCallsAreToldInChinese(t *testing.T) {
	for args, want := range map[string]string{
		"nonsense":     `没有命令 "nonsense"`,
		"race":         "是否想用：run race",
		"run nonsense": `没有场景 "nonsense"；可选：race, `,
		"-nonsense":    "没有选项 -nonsense",
		"-seed x":      `值 "x" 不适用于选项 -seed`,
		"-o":           "选项 -o 需要一个值",
		"-=":           "选项的写法有误",
		"list race":    "list 不接受参数",
		"docs":         "docs 需要一个目录",
	} {
		code, _, stderr := called(t, append([]string{"-lang=zh"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, stderr, want)
		assert.Contains(t, stderr, "加 -h 可查看用法。")
		assert.Equal(t, 2, strings.Count(stderr, "\n"), "the error and a hint: %s", stderr)
	}
	code, _, stderr := called(t, "-lang", "fr")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, `no language "fr"`)
	_, stdout, _ := called(t, "-lang", "zh", "-h")
	assert.Contains(t, stdout, "使用的语言")
	assert.Contains(t, stdout, "（默认值：1）")
}

func TestBothLanguagesHaveTheFiguresOfOneRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := called(t, "run", "race", "fairness", "reentrancy", "-quick", "-o", page)
	require.Equal(t, exitOK, code, stdout+stderr)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	parts := strings.Split(string(text), `<div class="page" data-lang="`)
	require.Len(t, parts, 3)
	figures := func(part string) []string {
		found := strings.Join(regexp.MustCompile(`(?s)<div class="found">.*?</div>|<table.*?</table>`).
			FindAllString(part, -1), "")
		found = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(found, " ")
		all := regexp.MustCompile(`\d+(\.\d+)?`).FindAllString(html.UnescapeString(found), -1)
		slices.Sort(all)
		return all
	}
	english, chinese := figures(parts[1]), figures(parts[2])
	require.Greater(t, len(english), 50)
	require.True(t, slices.Equal(english, chinese))
}

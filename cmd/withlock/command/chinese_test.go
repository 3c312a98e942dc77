//go:build unix

package command

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	safe "github.com/jucgo/locks/internal/terminal"
)

// inChineseToo returns what the program prints where the language is Chinese.
func inChineseToo(t *testing.T, args ...string) string {
	t.Helper()
	t.Setenv("LC_ALL", "zh_CN.UTF-8")
	code, stdout, stderr := here(args...)
	require.Zero(t, code, stderr)
	return stdout
}

// allHelp are the command lines whose output has all texts.
func allHelp() (all [][]string) {
	all = [][]string{{"-h"}, {"man"}, {"complete", ""}, {"complete", "run", "-"}, {"complete", "run", "-on-lost", ""},
		{"complete", "completion", ""}}
	for _, c := range commands(&output{}, nil).VisibleCommands() {
		all = append(all, []string{c.Name, "-h"})
	}
	return all
}

// Command lines, roff's lines and names stay as they are.
var untranslatedOnPurpose = regexp.MustCompile(`(?m)^ *withlock \w.*$|^\.(?:B|br).*$|sh -c '[^']*'|` +
	`withlock COMMAND -h|withlock man \| man -l -|Google Cloud Storage|NATS JetStream|https?://\S+`)

func TestHelpAndManualHaveNoEnglishWhereTheLanguageIsChinese(t *testing.T) {
	for _, args := range allHelp() {
		said := inChineseToo(t, args...)
		rest := untranslatedOnPurpose.ReplaceAllString(strings.NewReplacer(`\-`, "-", `\:`, "").Replace(said), "")
		require.Empty(t, regexp.MustCompile(`.*\b[a-z]{2,} [a-z]{2,}\b.*`).FindAllString(rest, -1), "%q", args)
		require.Regexp(t, `\p{Han}`, said, "%q", args)
		if args[0] == "man" {
			require.NotRegexp(t, `\p{Han}[ \n]\p{Han}`, said, "the manual puts a space for the end of a line")
		}
	}
}

func TestEveryTranslationIsUsed(t *testing.T) {
	var all strings.Builder
	for _, args := range allHelp() {
		all.WriteString(inChineseToo(t, args...))
	}
	squeeze := strings.NewReplacer(" ", "", "\n", "", `\:`, "", `\-`, "-", `\fI`, "", `\fR`, "", "`", "", ".PP", "", `\&`, "").Replace
	said := squeeze(all.String())
	for en, zh := range inChinese {
		if en == "print candidates for the last of the words" {
			continue // of a hidden command
		}
		for part := range strings.SplitSeq(squeeze(strings.ReplaceAll(zh, "%s", "\x00")), "\x00") {
			require.True(t, strings.Contains(said, part), "%s", en)
		}
	}
}

func TestTranslationsHaveTheNumbersAndNamesOfTheirTexts(t *testing.T) {
	kept := regexp.MustCompile("%s|`[A-Z]+`|\\d+|\\bWITHLOCK_\\w+|\\bLOCK_\\w+|\\bSIG\\w+|(?:^|[ 、。，：（])-[a-z][a-z-]*|\\./\\S+\\b")
	style := regexp.MustCompile(`\p{Han}[A-Za-z0-9` + "`" + `]|[A-Za-z0-9` + "`" + `]\p{Han}|\p{Han}[,:;()]|[,:;()]\p{Han}|[，：；。] `)
	found := func(text string) (all []string) {
		for _, s := range kept.FindAllString(text, -1) {
			all = append(all, strings.TrimLeft(s, " 、。，：（"))
		}
		slices.Sort(all)
		return all
	}
	for en, zh := range inChinese {
		require.Equal(t, found(en), found(zh), "%s\n%s", en, zh)
		require.NotRegexp(t, style, strings.ReplaceAll(zh, "\n", ""), zh)
	}
}

func TestChineseHelpFitsATerminal(t *testing.T) {
	for _, args := range allHelp() {
		if args[0] == "man" || args[0] == "complete" {
			continue
		}
		for line := range strings.Lines(inChineseToo(t, args...)) {
			line = strings.TrimSuffix(line, "\n")
			require.LessOrEqual(t, safe.Columns(line), 100, "%q: %s", args, line)
			require.NotRegexp(t, `^ *[，。：；、）]`, line, "%q", args)
			require.NotRegexp(t, ` $`, line, "%q", args)
		}
	}
}

func TestErrorsStayInEnglish(t *testing.T) {
	t.Setenv("LC_ALL", "zh_CN.UTF-8")
	_, _, stderr := here("run", "-name=a", "true")
	require.Contains(t, stderr, "no store: give -store URL")
}

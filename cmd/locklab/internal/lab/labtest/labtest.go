// Package labtest checks courses of the lab.
package labtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// Shows runs all scenarios, quickly, and checks that each shows what it teaches.
func Shows(t *testing.T, course *lab.Course) {
	t.Helper()
	for _, s := range course.All() {
		t.Run(s.Name, func(t *testing.T) {
			r := lab.Run(t.Context(), s, lab.Options{Quick: true, Seed: 1, Limit: time.Minute})
			for _, c := range r.Checks {
				assert.True(t, c.OK || c.Open, "%s: %s", c.Text, c.Got)
			}
			require.Empty(t, r.Error.EN)
			require.True(t, r.OK)
			require.NotEmpty(t, r.Checks, "it asserts something")
			require.NotEmpty(t, r.Timelines, "it has a picture")
			require.NotEmpty(t, r.Found.EN)
			require.NotContains(t, r.Found.EN, "no value")
			require.Empty(t, Untranslated(r), "texts of the run without a translation")
			for _, tl := range r.Timelines {
				require.NotEmpty(t, tl.Title)
				require.NotEmpty(t, tl.Desc)
				require.GreaterOrEqual(t, len(tl.Lanes), 2, tl.Title)
				for _, lane := range tl.Lanes {
					require.NotEmpty(t, lane.Spans, "%s of %s", lane.Name, tl.Title)
					end := time.Duration(0)
					for _, s := range lane.Spans {
						require.GreaterOrEqual(t, s.From, end, "%s of %s", lane.Name, tl.Title)
						require.Greater(t, s.To, s.From, "%s of %s", lane.Name, tl.Title)
						end = s.To
					}
				}
			}
			for _, c := range r.Charts {
				require.NotEmpty(t, c.Desc, c.Title)
				require.NotEmpty(t, c.Series, c.Title)
				for _, s := range c.Series {
					require.NotEmpty(t, s.Points, "%s of %s", s.Name, c.Title)
				}
			}
		})
	}
}

// Told checks that every scenario has all its texts and a file of its own, other than helpers,
// in the working directory.
func Told(t *testing.T, course *lab.Course, helpers ...string) {
	t.Helper()
	names := map[string]bool{}
	lesson := 0
	for _, s := range course.All() {
		require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, s.Name)
		require.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		require.Greater(t, s.Lesson, lesson, "%s: a number of its own", s.Name)
		lesson = s.Lesson
		require.NotEmpty(t, s.Java.EN, s.Name)
		for what, text := range map[string]lab.Text{"Topic": s.Topic, "Title": s.Title, "Question": s.Question,
			"Claim": s.Claim, "Look": s.Look, "Found": s.Found, "Take": s.Take} {
			for _, lang := range lab.Langs {
				require.NotEmpty(t, strings.TrimSpace(text.In(lang)), "%s of %s", what, s.Name)
				require.Zero(t, strings.Count(text.In(lang), "`")%2, "%s of %s", what, s.Name)
			}
		}
		code, err := course.Code(s)
		require.NoError(t, err)
		require.Contains(t, code, "func ")
		require.NotContains(t, code, "//lab:")
		_, ok := course.Find(s.Name)
		require.True(t, ok)
	}
	_, ok := course.Find("nonsense")
	require.False(t, ok)

	// One file a scenario, and none without.
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		name := strings.ReplaceAll(strings.TrimSuffix(f.Name(), ".go"), "_", "-")
		require.True(t, names[name] || name == "scenarios" || slices.Contains(helpers,
			name) || f.IsDir() || strings.HasSuffix(name, "-test"), f.Name())
	}
}

// HasNoFigures checks the texts for figures. They differ from machine to machine, so only Found may have any, and those from the run.
func HasNoFigures(t *testing.T, course *lab.Course) {
	t.Helper()
	figure := regexp.MustCompile(`\d+(\.\d+)?\s*(ns|µs|us|ms|s|%|x|times|goroutines|GHz)\b|\d[\d,.]*\d|\d\s*%`)
	notText := regexp.MustCompile("\\{\\{[^}]*\\}\\}|`[^`]*`")
	for _, s := range course.All() {
		for what, text := range map[string]lab.Text{"Question": s.Question, "Claim": s.Claim, "Look": s.Look,
			"Found": s.Found, "Take": s.Take} {
			for _, lang := range lab.Langs {
				assert.Empty(t, figure.FindString(notText.ReplaceAllString(text.In(lang), "")), "%s of %s", what,
					s.Name)
			}
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var anyVerb = regexp.MustCompile(`%(?:\[\d+\])?[sdvq]`)

// messagesOf returns the parts of messages in a file of the checks: the strings with words and
// spaces, without documentation, patterns, and errors of flags.
func messagesOf(t *testing.T, name string, text any) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			return !ok || key.Name != "Doc"
		case *ast.CallExpr:
			called := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				called = f.Sel.Name
			case *ast.Ident:
				called = f.Name
			}
			return !slices.Contains([]string{"MustCompile", "Errorf", "ContainsAny", "TrimLeft"}, called)
		case *ast.BasicLit:
			s, err := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && err == nil && strings.Contains(s, " ") && !strings.Contains(s, "\n") &&
				regexp.MustCompile(`[a-z]{2}`).MatchString(s) {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}

// untranslated returns the messages that are in no entry. A verb of a message can stand for a part
// that its entries write out.
func untranslated(messages []string) (all []string) {
	for _, m := range messages {
		parts := anyVerb.Split(strings.TrimSpace(m), -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		in := regexp.MustCompile(strings.Join(parts, ".*"))
		if !slices.ContainsFunc(words, func(w struct{ en, zh string }) bool { return in.MatchString(w.en) }) {
			all = append(all, m)
		}
	}
	return all
}

func TestEveryMessageHasATranslation(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("checks", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		messages := messagesOf(t, file, nil)
		n += len(messages)
		for _, m := range untranslated(messages) {
			t.Errorf("%s: no translation of %q in chinese.go", file, m)
		}
	}
	if n < 25 {
		t.Fatalf("only %d messages", n)
	}
}

func TestAMessageWithoutATranslationIsFound(t *testing.T) {
	const source = `package p
		import "a b"
		var a = check("name", nil, nil, "report it\n\nas this says")
		var b = regexp.MustCompile("lock of the caller")
		func f() {
			report("%s of %s, which is already unlocked")
			report("%s of %s, which is already locked")
			report("the function locks " + name + " is held while")
		}`
	got := untranslated(messagesOf(t, "p.go", source))
	want := []string{"%s of %s, which is already locked", "the function locks ", " is held while"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestTranslationsHaveTheArgumentsAndNumbersOfTheirMessages(t *testing.T) {
	style := regexp.MustCompile(`\p{Han}[A-Za-z0-9]|[A-Za-z0-9]\p{Han}|\p{Han}[,:;()]|[,:;()]\p{Han}|[，：；] `)
	digits := regexp.MustCompile(`\d+`)
	for _, w := range words {
		var en, zh []string
		for i, v := range verb.FindAllString(w.en, -1) {
			en = append(en, fmt.Sprint(i+1, v[len(v)-1:]))
		}
		for i, v := range verb.FindAllStringSubmatch(w.zh, -1) {
			at := strings.Trim(v[1], "[]")
			if at == "" {
				at = strconv.Itoa(i + 1)
			}
			zh = append(zh, at+" "+v[0][len(v[0])-1:])
		}
		for i := range en {
			en[i] = strings.Replace(en[i], " ", "", 1)
		}
		for i := range zh {
			zh[i] = strings.Replace(zh[i], " ", "", 1)
		}
		slices.Sort(zh)
		if !slices.Equal(en, zh) {
			t.Errorf("%q has %q, and %q has %q", w.en, en, w.zh, zh)
		}
		plain := func(s string) string { return verb.ReplaceAllString(s, "") }
		if a, b := digits.FindAllString(plain(w.en), -1), digits.FindAllString(plain(w.zh), -1); !slices.Equal(a, b) {
			t.Errorf("%q and %q have other numbers", w.en, w.zh)
		}
		if f := style.FindString(w.zh); f != "" || plain(w.zh) == "" {
			t.Errorf("%q: %q", w.zh, f)
		}
	}
}

func TestMessagesOfSeveralPartsAreTranslatedWhole(t *testing.T) {
	for message, want := range map[string]string{
		"return without Unlock of s.mu": "没有对 s.mu 调用 Unlock 就返回",
		"Add calls grow, which calls Lock of s.mu, which this function already holds: it waits for itself": "Add 调用 grow，" +
			"后者调用 s.mu 的 Lock：本函数已持有这把锁，会一直等自己",
		"B.mu is acquired while A.mu is held, and in a function in g the other way round: " +
			"f locks A.mu (line 3), then calls h, which locks B.mu (line 9); a function in g locks B.mu (line 5), then locks A.mu (line 6)": "持有 A.mu 时获取 B.mu，" +
			"而 g 中的一个函数中的顺序相反：f 锁定 A.mu（第 3 行），然后调用 h，后者锁定 B.mu（第 9 行）；" +
			"g 中的一个函数锁定 B.mu（第 5 行），然后锁定 A.mu（第 6 行）",
		"deferred a function in f calls g, which calls Lock of s.mu before the deferred Unlock: it waits for itself": "defer 的 f 中的一个函数" +
			"调用 g，后者调用 s.mu 的 Lock，早于 defer 的 Unlock，会一直等自己",
		"a message of tomorrow": "a message of tomorrow",
	} {
		if got := inChinese(message); got != want {
			t.Errorf("%q\n got %q\nwant %q", message, got, want)
		}
	}
}

func TestTheEnvironmentChoosesTheLanguage(t *testing.T) {
	for _, c := range []struct {
		all, messages, lang string
		want                bool
	}{
		{"", "", "", false}, {"", "", "zh_CN.UTF-8", true}, {"C", "", "zh_CN.UTF-8", false},
		{"", "zh-Hans", "en_US.UTF-8", true}, {"zh", "", "", true}, {"", "", "zha", false},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		if got := chinese(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%v: %t", env, got)
		}
	}
}

// The packages of testdata have every message of the checks.
func TestReportsAreInChineseWhereTheLanguageIs(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	reports := func(lang string, args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = filepath.Join("checks", "testdata")
		cmd.Env = append(os.Environ(), "GOWORK=off", "PWD=", "LC_ALL="+lang)
		var stdout bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stdout
		_ = cmd.Run()
		return stdout.String()
	}
	messages := regexp.MustCompile(`"message": ("(?:[^"\\]|\\.)*")`)
	english := reports("C", tool, "-json", "./...")
	if n := len(messages.FindAllString(english, -1)); n < 50 || regexp.MustCompile(`\p{Han}`).MatchString(english) {
		t.Fatalf("%d messages in English:\n%s", n, english)
	}
	left := map[string]bool{}
	for _, m := range messages.FindAllStringSubmatch(reports("zh_CN.UTF-8", tool, "-json", "./..."), -1) {
		said, err := strconv.Unquote(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`[a-z]{2,} [a-z]{2,}`).MatchString(said) || !regexp.MustCompile(`\p{Han}`).MatchString(said) {
			left[said] = true
		}
	}
	for said := range left {
		t.Errorf("not in Chinese: %s", said)
	}
	for range 2 { // the cache of go vet keeps the languages apart
		for lang, han := range map[string]bool{"C": false, "zh_CN.UTF-8": true} {
			said := reports(lang, "go", "vet", "-vettool="+tool, "./shop")
			if !strings.Contains(said, "(deferlock)") || regexp.MustCompile(`\p{Han}`).MatchString(said) != han {
				t.Errorf("%s: %s", lang, said)
			}
		}
	}
}

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// participles are the irregular participles of the library. All others end in ed.
var participles = strings.Fields(`begun bound broken built chosen done drawn fallen forgotten found frozen given gone
	heard held hidden kept known laid left lent lost made meant met paid seen sent shown sold stolen taken taught told
	understood woken won written`)

// wordsInED end in ed and are no participles.
var wordsInED = strings.Fields("exceed feed need seed speed")

// notQuestions are functions named by a participle that report no bool. Each has its reason.
var notQuestions = map[string]string{
	"distributed/filelock.lockedByte":   "a noun with an adjective",
	"distributed/natslock.deletedError": "a noun with an adjective",
	"distributed/sqllock.namedKey":      "a noun with an adjective",
	"semaphore.heldPermits":             "a noun with an adjective",
	"internal/waits.awaitedBy":          "a lock that a goroutine waits for",
}

// notLibrary matches the files that are no pages of the library, and the pages that have names from
// before this rule.
var notLibrary = regexp.MustCompile(`^internal/syncq/|^rwlock/|^distributed/redislock/|^distributed/open/|^distributed/[a-z0-9]*/[a-z0-9]*open/|` +
	`_test\.go$|/testdata/|^cmd/|^tools/|^examples/|^bench/|^internal/(bench|test)/|` +
	`^lockstest/|^distributed/(bench|interop)/|^distributed/internal/(redisson|adaptertest)/|/leasetest/|/suite/|/apiserver/`)

// A function whose name is a participle reads as a question in Go. So it answers the question: one
// of its results is a bool. A command has a verb as its name, an event is onX or noteX, and an
// error is named as an error.
func TestFunctionsNamedByAParticipleAnswerAQuestion(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	seen := make(map[string]bool)
	for _, name := range tracked(t, w) {
		if !strings.HasSuffix(name, ".go") || notLibrary.MatchString(name) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(w.Folder, filepath.FromSlash(name)), nil, 0)
		must(t, err)
		for _, fn := range riddles(f) {
			key := filepath.ToSlash(filepath.Dir(name)) + "." + fn
			seen[key] = true
			if notQuestions[key] == "" {
				t.Errorf("%s: %s is named by a participle and reports no bool: name it by a verb, by onX or noteX, "+
					"or as an error", name, fn)
			}
		}
	}
	for key := range notQuestions {
		if !seen[key] {
			t.Errorf("%s is not there any more: remove its exception", key)
		}
	}
}

func TestARiddleIsFound(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
		func (p *place) answered(rev int64) {}
		func (p *place) held() bool { return true }
		func (p *place) need() {}
		func (p *place) noteAnswer() {}
		func taken(s []string) error { return nil }
		func Released() {}`, 0)
	must(t, err)
	if got := riddles(f); !slices.Equal(got, []string{"answered", "taken"}) {
		t.Errorf("found %v", got)
	}
}

// riddles returns the unexported functions of f whose first word is a participle, and that have no
// bool among their results.
func riddles(f *ast.File) (names []string) {
	first := regexp.MustCompile(`^[a-z]+`)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		word := first.FindString(fn.Name.Name)
		participle := slices.Contains(participles, word) ||
			strings.HasSuffix(word, "ed") && !slices.Contains(wordsInED, word)
		if participle && !reportsBool(fn.Type.Results) {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

func reportsBool(results *ast.FieldList) bool {
	return results != nil && slices.ContainsFunc(results.List, func(r *ast.Field) bool {
		id, ok := r.Type.(*ast.Ident)
		return ok && id.Name == "bool"
	})
}

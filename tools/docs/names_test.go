package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
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

// wordsInED end in ed, and are not participles.
var wordsInED = strings.Fields("exceed feed need seed speed")

// notQuestions are functions named by a participle that report no bool. Each has its reason.
var notQuestions = map[string]string{
	"distributed/filelock.lockedByte":   "a noun with an adjective",
	"distributed/natslock.deletedError": "a noun with an adjective",
	"distributed/sqllock.namedKey":      "a noun with an adjective",
	"semaphore.heldPermits":             "a noun with an adjective",
	"internal/waits.awaitedBy":          "a lock that a goroutine waits for",
}

// notLibrary matches the files that are not part of the library.
var notLibrary = regexp.MustCompile(`_test\.go$|/testdata/|^cmd/|^tools/|^examples/|^bench/|^internal/(bench|test)/|` +
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

// oneMeaning has words that stood for several things once. The lists have the ways in which each
// word may be declared now. A value is a field, a parameter, a variable or a constant of the type.
// A type is a type of the package, and a func is a function with the result. A declaration without
// a type counts by its value.
var oneMeaning = map[string][]string{
	"patience": {"value time.Duration", "func time.Duration"}, // how long an answer is waited for
	"released": {"value atomic.Bool"},                         // the hold or the permits were given back
	"kind": { // a kind of lock
		"type etcdlock", "type redislock", "type zklock", "func *lease.Client error",
		"value *kind", "value K", "value *Kind", "value *syncq.Kind", "value syncq.Kind{…}",
	},
	"turn": { // the right to act, which one goroutine or request has at a time
		"type etcdlock", "value chan struct{}", "value chan []*call",
		"value sync.Mutex", "value fair.Mutex", "value *reentrant.Mutex",
	},
	"place": {"type etcdlock", "value park.Place", "value int"}, // where a waiter waits, or a hold is listed
}

// A word that is declared in another way has a second meaning. A reader takes it for the first
// meaning.
func TestAWordHasOneMeaning(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	found := make(map[string]bool)
	for _, name := range tracked(t, w) {
		if !strings.HasSuffix(name, ".go") || notLibrary.MatchString(name) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(w.Folder, filepath.FromSlash(name)), nil, 0)
		must(t, err)
		for _, d := range declarations(f) {
			if allowed, ok := oneMeaning[d[0]]; ok {
				found[d[0]] = true
				if !slices.Contains(allowed, d[1]) {
					t.Errorf("%s: %s is declared as %q, and %q is its meaning: find another word",
						name, d[0], d[1], allowed)
				}
			}
		}
	}
	for word := range oneMeaning {
		if !found[word] {
			t.Errorf("%s is not declared any more: remove it from the list", word)
		}
	}
}

func TestASecondMeaningIsFound(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
		const patience = 10 * time.Second
		const turn = 5
		type place struct{ released atomic.Bool; turn chan struct{} }
		func (p *place) patience(kind int) time.Duration { return 0 }`, 0)
	must(t, err)
	want := [][2]string{
		{"patience", "value time.Duration"}, {"turn", "value 5"}, {"place", "type a"}, {"released", "value atomic.Bool"},
		{"turn", "value chan struct{}"}, {"patience", "func time.Duration"}, {"kind", "value int"},
	}
	got := declarations(f)
	for _, d := range want {
		if !slices.Contains(got, d) {
			t.Errorf("%q is not among %q", d, got)
		}
	}
}

// declarations returns the names that f declares, and how.
func declarations(f *ast.File) (all [][2]string) {
	add := func(id *ast.Ident, how string) { all = append(all, [2]string{id.Name, how}) }
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			add(n.Name, "type "+f.Name.Name)
		case *ast.Field:
			for _, id := range n.Names {
				add(id, "value "+types.ExprString(n.Type))
			}
		case *ast.FuncDecl:
			results := ""
			if n.Type.Results != nil {
				for _, r := range n.Type.Results.List {
					results += " " + types.ExprString(r.Type)
				}
			}
			add(n.Name, "func"+results)
		case *ast.ValueSpec:
			for i, id := range n.Names {
				switch {
				case n.Type != nil:
					add(id, "value "+types.ExprString(n.Type))
				case i < len(n.Values):
					value := types.ExprString(n.Values[i])
					if strings.Contains(value, "time.") {
						value = "time.Duration"
					}
					add(id, "value "+value)
				}
			}
		}
		return true
	})
	return all
}

package checks

import (
	"go/ast"
	"go/token"
	"strings"
)

// LeftOut counts the places of a package that acquire a lock, without the places in tests. The
// checks follow all places but the places that the other fields count, each in one field.
type LeftOut struct {
	Package      string
	Acquisitions int
	Nameless     int // the lock has no fixed name, as shards[i].mu
	Given        int // other code gets the lock
	Unclear      int // a deferred function or many branches leave open whether the lock is held
	Released     int // another function releases the lock, so that some checks leave it out
	Kept         int // the name or the comment of the function says that it keeps the lock
	Generated    int // in a generated file
}

// Any reports whether something is left out.
func (l LeftOut) Any() bool { return l.Nameless+l.Given+l.Unclear+l.Released+l.Kept+l.Generated > 0 }

// leftOut gets the counts of each package. It is nil unless CountLeftOut has set it.
var leftOut func(LeftOut)

// CountLeftOut makes the analysis call count once for each package, perhaps from several
// goroutines. A package that is analyzed with its tests does not lead to a call, since it is
// analyzed without them too. Call CountLeftOut before the analysis.
func CountLeftOut(count func(LeftOut)) { leftOut = count }

// unclear reports whether it is open what the function holds, before a call or at a return.
func (t *tracked) unclear(call *ast.CallExpr) bool {
	for st := range t.before[call] {
		if st.unclear {
			return true
		}
	}
	for st := range t.end() {
		if st.unclear {
			return true
		}
	}
	return false
}

// countLeftOut reports what the checks leave out of the package.
func (fs *flows) countLeftOut() {
	if leftOut == nil {
		return
	}
	inTest := func(pos token.Pos) bool {
		return strings.HasSuffix(fs.pass.Fset.Position(pos).Filename, "_test.go")
	}
	for _, f := range fs.pass.Files {
		if inTest(f.FileStart) {
			return
		}
	}
	l := LeftOut{Package: fs.pass.Pkg.Path()}
	for _, f := range fs.functions {
		for _, call := range callsIn(f.body) {
			c := fs.lockCallOf(call)
			if c == nil || c.effect != acquire {
				continue
			}
			l.Acquisitions++
			if !generatedToo && generated(fs.pass, call.Pos()) {
				l.Generated++
				continue
			}
			if c.path == nil {
				l.Nameless++
				continue
			}
			switch t := f.byKey[c.path.key()]; {
			case t == nil || !fs.known(t):
				l.Given++
			case t.unclear(call):
				l.Unclear++
			case fs.released[t.path.id()]:
				l.Released++
			case fs.mayHandOver(f, t) || f.decl != nil && documented(f.decl.Doc.Text(), t):
				l.Kept++
			}
		}
	}
	leftOut(l)
}

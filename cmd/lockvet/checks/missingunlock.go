package checks

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/cfg"
)

// MissingUnlock reports a return with a lock that other returns of the function release.
var MissingUnlock = check("missingunlock", flow, runMissingUnlock, `report a return that leaves a lock held

The function releases the lock on other paths, but not before this return:

	mu.Lock()
	if full {
		return errFull // reported: mu is still held
	}
	mu.Unlock()

The same is true of a break or continue, and of a branch that leads to a return with the lock.

A function that releases the lock nowhere is reported too, if other functions of the package release
what they acquire, and none releases the lock for another function.

A function whose comment says that it hands the lock over is not reported. The name of a function can
say so if other code can release the lock. A lock that another function of the package releases, or
that other code gets, is not reported. A return with an error is reported, unless the comment says so.
Tests are not reported: one that fails may leave its locks.`)

// handsOver matches a word in the name of a function that may return with a lock.
var handsOver = regexp.MustCompile(`(?i)^(re|try|r|un)?(lock|acquire|begin|enter|hold)(s|d|ed|ing)?$`)

// words returns the words of a name: "R" and "Lock" of RLock.
func words(name string) (words []string) {
	runes, start := []rune(name), 0
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || runes[i] == '_' || unicode.IsUpper(runes[i]) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			words = append(words, strings.Trim(string(runes[start:i]), "_"))
			start = i
		}
	}
	return words
}

// These match what a sentence says of a function that returns with a lock: "returns with mu held",
// or "the caller must unlock it".
const aLock = `(?:(?i:(?:r?un|r)?(?:lock|mutex)\w*)|mu)`

var (
	staysHeld = regexp.MustCompile(`(?i)\b(return|leav|left|keep|kept|still|remain|exit|success|until)\w*\b`)
	byCaller  = regexp.MustCompile(`(?is)\b(callers?|must|responsib\w*|should|needs?|has to|have to)\b.*\b(r?unlock|releas)\w*\b|` +
		`\b(r?unlock|releas)\w*\b.*\b(callers?|must|responsib\w*|should|needs?|has to|have to)\b`)
	sentence = regexp.MustCompile(`(?s)(.*?)(?:[.;:!?](?:\s|$)|\n\n|$)`)
)

// neverReleased matches a comment on a lock that stays held on purpose.
var neverReleased = regexp.MustCompile(`(?is)\b(never|forever|for ever)\b.*\b(r?unlock|releas)\w*\b|` +
	`\b(held|hold|holds|keep|keeps|locked)\b.*\b(forever|for ever|for good)\b`)

// documented reports whether a comment says that its function returns with a lock. A comment about
// the holds of a caller, or about the work under the lock, does not.
func documented(doc string, t *tracked) bool {
	name := t.path.root.Name()
	if n := len(t.path.fields); n > 0 {
		name = t.path.fields[n-1].Name()
	}
	lock := `(?:` + aLock + `|` + regexp.QuoteMeta(name) + `)`
	named := regexp.MustCompile(`\b` + lock + `\b`)
	held := regexp.MustCompile(`\b` + lock + `\b\W+(?:\w+\W+){0,3}(?:held|locked)\b|` +
		`\b(?i:held|holds?|holding|keeps?|keeping|kept|leaves?|leaving)\b\W+(?:\w+\W+){0,3}` + lock + `\b|\blocked\b`)
	return slices.ContainsFunc(sentence.FindAllString(doc, -1), func(s string) bool {
		return staysHeld.MatchString(s) && held.MatchString(s) || byCaller.MatchString(s) && named.MatchString(s)
	})
}

func runMissingUnlock(pass *analysis.Pass, fs *flows) {
	for _, f := range fs.functions {
		for _, t := range f.locks {
			if slices.ContainsFunc(fs.swaps[f], func(s swap) bool { return s.left == t }) {
				continue // OtherUnlock reports it
			}
			for _, l := range fs.leaks(f, t) {
				pass.Report(analysis.Diagnostic{
					Pos: l.at.Pos(), Message: l.how + undo(l.mode) + " of " + t.path.text,
					Related: t.acquisitions(l.mode),
				})
			}
		}
	}
}

// A leak is a place where f certainly leaves a lock held that it releases elsewhere.
type leak struct {
	at   ast.Node
	mode mode
	how  string
}

// leaks returns the leaks of a lock in f.
func (fs *flows) leaks(f *function, t *tracked) (found []leak) {
	if f.deferred || isTest(fs.pass, f.node) || !fs.known(t) || t.reenters() {
		return nil
	}
	declared := f.decl != nil && f.outer == nil
	// Another function may release the lock. But it hardly does so after an error.
	handed := fs.released[t.path.id()] || fs.nameless[t.path.id()] || fs.foreign.released[t.path.idKey()] ||
		declared && fs.mayHandOver(f, t)
	for _, m := range []mode{write, read} {
		forgotten := !t.releases(m)
		if forgotten && (handed || !fs.disciplined(f, t, m)) {
			continue
		}
		left := func(st state) bool { return st.net(m) > 0 }
		lost := forgotten && !fs.otherReleases(f, t, m)
		for ret, s := range t.exits {
			if s.all(left) && (!handed || !t.foreign && fails(fs.info, f.body, ret)) {
				found = append(found, leak{ret, m, "return without "})
			}
		}
		for _, b := range f.graph.Blocks {
			if handed || len(b.Succs) != 1 || t.in[b.Index] == nil {
				continue
			}
			// Where ways join, one way can have the lock and the other way not.
			next := b.Succs[0]
			ends := false
			if !t.out[b.Index][0].all(left) || t.in[next.Index].all(left) {
				continue
			}
			// After a continue the next round counts, if there is a next round.
			if body := nextRound(b); body != nil {
				next = body
			}
			if f.doomed(t, next, lost, map[*cfg.Block]bool{}, &ends) && ends {
				if at, how := f.end(b); at != nil {
					found = append(found, leak{at, m, how})
				}
			}
		}
	}
	if len(found) == 0 || declared && documented(f.decl.Doc.Text(), t) {
		return nil
	}
	slices.SortFunc(found, func(a, b leak) int { return int(a.at.Pos() - b.at.Pos()) })
	if len(found) > 1 && !t.releases(found[0].mode) {
		found = found[:1] // one mistake
	}
	return found
}

// disciplined reports whether f must release a lock that it acquires, although f releases the lock
// nowhere. This is so if other functions release the lock after their own acquisitions, and no
// function releases it for another function.
func (fs *flows) disciplined(f *function, t *tracked, m mode) bool {
	id := t.path.id()
	if id == nil {
		return fs.neverReleased(f, t, m)
	}
	if id.Pkg() != fs.pass.Pkg || len(fs.apart[id]) > 0 || len(fs.balanced[id]) == 0 || fs.orders.made(f)[t.path.root] ||
		copied(fs.info, f.body, t.path.root) {
		return false
	}
	for _, file := range fs.pass.Files {
		for _, c := range file.Comments {
			if within2(c, f.body) && (documented(c.Text(), t) || neverReleased.MatchString(c.Text())) {
				return false
			}
		}
	}
	if fs.mayHandOver(f, t) || f.obj != nil && (f.obj.Name() == "main" || f.obj.Name() == "init") {
		return false
	}
	return f.waitsItself(t, m)
}

// waitsItself reports whether f itself acquires the lock, and waits for it.
func (f *function) waitsItself(t *tracked, m mode) bool {
	return slices.ContainsFunc(t.calls, func(c *lockCall) bool {
		return c.mode == m && c.via == nil && c.waits() && f.byCall[c.call] == c && !f.defers[c.call] &&
			local(c.fn) && !types.IsInterface(c.fn.Signature().Recv().Type())
	})
}

// neverReleased reports whether t is a variable of f, or of a function around f, and nothing but
// acquisitions uses it.
func (fs *flows) neverReleased(f *function, t *tracked, m mode) bool {
	outermost := f
	for outermost.outer != nil {
		outermost = outermost.outer
	}
	v, ok := t.path.root.(*types.Var)
	if !ok || len(t.path.fields) > 0 || !isStruct(v.Type()) || !within(v, outermost.body) || !f.waitsItself(t, m) {
		return false
	}
	acquires := true
	for c := range outermost.at.Preorder((*ast.Ident)(nil)) {
		if fs.info.Uses[c.Node().(*ast.Ident)] != v {
			continue
		}
		call, ok := c.Parent().Parent().Node().(*ast.CallExpr)
		if !ok || c.ParentEdgeKind() != edge.SelectorExpr_X {
			return false
		}
		method := fs.lockCallOf(call)
		acquires = acquires && method != nil && method.effect == acquire
	}
	return acquires
}

// otherReleases reports whether f, or a function in it or around it, releases the lock by another
// name, such as another variable of a loop.
func (fs *flows) otherReleases(f *function, t *tracked, m mode) bool {
	for f.outer != nil {
		f = f.outer
	}
	id := t.path.id()
	var releases func(g *function) bool
	releases = func(g *function) bool {
		return slices.ContainsFunc(g.locks, func(u *tracked) bool { return u.path.id() == id && u.releases(m) }) ||
			slices.ContainsFunc(g.inner, releases)
	}
	return id == nil || releases(f)
}

// mayHandOver reports whether the name of f, or of the function around it, says that f keeps a
// lock. Then some function, or another package, has to release the lock.
func (fs *flows) mayHandOver(f *function, t *tracked) bool {
	id := t.path.id()
	return f.decl != nil && slices.ContainsFunc(words(f.decl.Name.Name), handsOver.MatchString) &&
		(id == nil || id.Exported() || len(fs.apart[id]) > 0 || fs.nameless[id])
}

// copied reports whether a variable gets the value of another variable, which then leads to the
// same lock.
func copied(info *types.Info, body ast.Node, variable types.Object) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		_, rhs := assignment(n)
		for _, e := range rhs {
			id, ok := ast.Unparen(e).(*ast.Ident)
			found = found || ok && info.Uses[id] == variable
		}
		return !found
	})
	return found
}

// findDiscipline notes which locks functions release after they have acquired them, and which locks
// a function releases without having acquired them.
func (fs *flows) findDiscipline() {
	for _, f := range fs.functions {
		for _, t := range f.locks {
			id := t.path.id()
			if id == nil || f.deferred { // the function around has what f does
				continue
			}
			direct := func(e effect) bool {
				return slices.ContainsFunc(t.calls, func(c *lockCall) bool { return c.effect == e && c.via == nil })
			}
			switch {
			case direct(release) && direct(acquire):
				fs.balanced[id] = append(fs.balanced[id], f)
			case direct(release) || direct(convert):
				fs.apart[id] = append(fs.apart[id], f)
			}
		}
	}
}

// fails reports whether a return certainly returns an error.
func fails(info *types.Info, body ast.Node, ret *ast.ReturnStmt) bool {
	if len(ret.Results) == 0 {
		return false
	}
	last := ast.Unparen(ret.Results[len(ret.Results)-1])
	if t := info.TypeOf(last); t == nil || !types.Identical(t, types.Universe.Lookup("error").Type()) {
		return false
	}
	switch e := last.(type) {
	case *ast.CallExpr:
		return calleeAmong(info, e, "errors.New", "fmt.Errorf") != nil
	case *ast.Ident:
		v, ok := info.Uses[e].(*types.Var)
		return ok && v.Pkg() != nil && (v.Parent() == v.Pkg().Scope() || checked(info, body, ret, v))
	case *ast.SelectorExpr:
		return info.Selections[e] == nil // a variable of another package
	}
	return false
}

// checked reports whether a return is in the body of "if err != nil".
func checked(info *types.Info, body ast.Node, ret *ast.ReturnStmt, err *types.Var) (found bool) {
	inspectOwn(body, func(n ast.Node) {
		i, ok := n.(*ast.IfStmt)
		if !ok || !within2(ret, i.Body) {
			return
		}
		if e, ok := ast.Unparen(i.Cond).(*ast.BinaryExpr); ok && e.Op == token.NEQ && info.Types[e.Y].IsNil() {
			id, ok := ast.Unparen(e.X).(*ast.Ident)
			found = found || ok && info.Uses[id] == err
		}
	})
	return found
}

// nextRound returns the body of the loop that b repeats, or nil.
func nextRound(b *cfg.Block) *cfg.Block {
	if len(b.Nodes) == 0 && b.Stmt == nil {
		return nil
	}
	head := b.Succs[0]
	if head.Kind == cfg.KindForPost && len(head.Succs) == 1 {
		head = head.Succs[0]
	}
	if head.Kind != cfg.KindForLoop && head.Kind != cfg.KindRangeLoop || len(head.Succs) != 2 || head.Stmt == nil {
		return nil
	}
	pos := token.NoPos
	if n := len(b.Nodes); n > 0 {
		pos = b.Nodes[n-1].Pos()
	} else {
		pos = b.Stmt.Pos()
	}
	if pos <= head.Stmt.Pos() || head.Stmt.End() <= pos {
		return nil
	}
	return head.Succs[0]
}

// doomed reports whether each way from the start of b leads to a return or to another acquisition
// of the lock, and over no other use of the lock. It sets ends if there is a way to an end. If lost
// is set, the end of a variable's scope is an end too: no other name leads to the lock.
func (f *function) doomed(t *tracked, b *cfg.Block, lost bool, seen map[*cfg.Block]bool, ends *bool) bool {
	if seen[b] {
		return true
	}
	seen[b] = true
	if r, ok := b.Stmt.(*ast.RangeStmt); ok && b.Kind == cfg.KindRangeBody && declares(r, t.path.root) {
		*ends = *ends || lost
		return lost
	}
	for _, n := range b.Nodes {
		if declares(n, t.path.root) {
			*ends = *ends || lost
			return lost
		}
		var use *lockCall // the first
		for _, call := range callsIn(n) {
			if use == nil {
				use = f.callOf(t, call)
			}
		}
		inLiteral := slices.ContainsFunc(f.inner, func(g *function) bool {
			return n.Pos() <= g.node.Pos() && g.node.End() <= n.End() && g.byKey[t.path.key()] != nil
		})
		switch _, returns := n.(*ast.ReturnStmt); {
		case inLiteral || assigns(f.info, n, t.path):
			return false
		case use != nil:
			*ends = true
			return use.waits() && plain(use.fn) && !f.defers[use.call]
		case returns:
			*ends = true
			return true
		}
	}
	return len(b.Succs) > 0 && !slices.ContainsFunc(b.Succs, func(next *cfg.Block) bool {
		return !f.doomed(t, next, lost, seen, ends)
	})
}

// declares reports whether n declares a variable.
func declares(n ast.Node, variable types.Object) bool {
	if r, ok := n.(*ast.RangeStmt); ok {
		return r.Pos() <= variable.Pos() && variable.Pos() < r.X.Pos()
	}
	return n.Pos() <= variable.Pos() && variable.Pos() < n.End()
}

// end returns the last statement of b, and how a report of it begins.
func (f *function) end(b *cfg.Block) (at ast.Node, how string) {
	start := token.NoPos
	switch s := b.Stmt.(type) {
	case *ast.IfStmt:
		start = s.Body.Pos()
		if b.Kind == cfg.KindIfElse {
			start = s.Else.Pos()
		} else if b.Kind == cfg.KindIfDone {
			start = s.End()
		}
	case nil:
	default:
		if b.Kind == cfg.KindSwitchCaseBody || b.Kind == cfg.KindSelectCaseBody {
			start = s.Pos()
		}
	}
	if n := len(b.Nodes); n > 0 {
		at, start = b.Nodes[n-1], b.Nodes[n-1].End()
	}
	if !start.IsValid() {
		return nil, ""
	}
	// The graph lacks nodes for break and continue.
	var branch *ast.BranchStmt
	inspectOwn(f.body, func(n ast.Node) {
		if br, ok := n.(*ast.BranchStmt); ok && br.Pos() >= start && (branch == nil || br.Pos() < branch.Pos()) {
			branch = br
		}
	})
	before := func(n ast.Node) bool { return start <= n.Pos() && n.Pos() < branch.Pos() }
	switch {
	case branch != nil && !slices.ContainsFunc(f.graph.Blocks, func(o *cfg.Block) bool {
		return slices.ContainsFunc(o.Nodes, before)
	}):
		return branch, branch.Tok.String() + " without "
	case at != nil:
		return at, "from here on, no "
	}
	return nil, ""
}

// reenters reports whether the function acquires the lock more than once at a time. Then its code
// counts its holds, or hangs soon.
func (t *tracked) reenters() bool {
	return slices.ContainsFunc(t.calls, func(c *lockCall) bool {
		return c.effect == acquire && t.before[c.call].holds(c.mode)
	})
}

// Package checks has the analyzers of lockvet. They find mistakes with the locks of package sync
// and with the locks of github.com/jucgo/locks.
//
// The analyzers report little and mean it. A report is true for all paths of control to its place,
// as far as one function shows, and the functions that it certainly calls. A call acquires and
// releases the locks of its callee, also in another package of the modules under work. The
// analyzers do not report a function that hands a held lock to its caller, nor a lock that other
// code of the package releases. So a function without a report may have mistakes. They do not look
// at calls through a variable with several functions, at calls of other modules, at locks such as
// shards[i].mu, at channels of other packages, or at other processes.
//
// A comment silences one finding:
//
//	//lockvet:ignore NAME reason
package checks

import (
	"cmp"
	"go/ast"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const url = "https://github.com/jucgo/locks/blob/main/cmd/lockvet/README.md"

// Analyzers returns all analyzers, in the order of README.md.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		MissingUnlock, DoubleLock, DoubleUnlock, OtherUnlock, DeferLock, DeferLoop, LockUpgrade, LockOrder,
		Blocked, LockError, LostOwner, DoContext, WaitLoop, UnlockedSignal,
	}
}

// Facts returns the analyzer that computes what other packages know of a package, and reports
// nothing. All checks of paths require it.
func Facts() *analysis.Analyzer { return flow }

// inOrder compares two places by the names of their files and their offsets. The files of a package
// are parsed at the same time, so that a token.Pos says nothing of places in two files.
func inOrder(pass *analysis.Pass, a, b ast.Node) int {
	at, other := pass.Fset.Position(a.Pos()), pass.Fset.Position(b.Pos())
	return cmp.Or(cmp.Compare(at.Filename, other.Filename), cmp.Compare(at.Offset, other.Offset))
}

// isTest reports whether n is in a test, or in a function that gets a testing.T or the like.
func isTest(pass *analysis.Pass, n ast.Node) (test bool) {
	if strings.HasSuffix(pass.Fset.Position(n.Pos()).Filename, "_test.go") {
		return true
	}
	for _, f := range pass.Files {
		if n.Pos() < f.FileStart || f.FileEnd <= n.Pos() {
			continue
		}
		ast.Inspect(f, func(around ast.Node) bool {
			if around == nil || test || n.Pos() < around.Pos() || around.End() <= n.Pos() {
				return false
			}
			var of *ast.FuncType
			switch around := around.(type) {
			case *ast.FuncDecl:
				of = around.Type
			case *ast.FuncLit:
				of = around.Type
			default:
				return true
			}
			test = slices.ContainsFunc(of.Params.List, func(p *ast.Field) bool {
				return strings.HasPrefix(typeName(pass.TypesInfo.TypeOf(p.Type)), "testing.")
			})
			return true
		})
	}
	return test
}

// isMisuse reports whether a test makes an acquisition by a call, and looks at its error, as tests of
// misuse do.
func isMisuse(pass *analysis.Pass, a acquisition, call *ast.CallExpr) bool {
	return a.call.outcome != always && isTest(pass, call)
}

package main

import (
	"fmt"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/analysis/facts/directives"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/analysis/report"
	"honnef.co/go/tools/config"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// staticcheckAnalyzers returns the analyzers of the program staticcheck without the analyzer of
// unused code, whose result has another form.
func staticcheckAnalyzers() []*lint.Analyzer {
	return slices.Concat(simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers)
}

// useStaticcheckDefaults disables the checks that staticcheck has disabled where no
// staticcheck.conf enables them.
func useStaticcheckDefaults() {
	checks := []string{"all"}
	for _, a := range staticcheckAnalyzers() {
		if a.Doc.NonDefault {
			checks = append(checks, "-"+a.Analyzer.Name)
		}
	}
	config.DefaultConfig.Checks = checks
}

// staticcheckOf returns one analyzer with all checks of staticcheck that conf enables. It is one
// analyzer because a comment "//lint:ignore" that matches no finding of any check is a finding.
func staticcheckOf(conf config.Config) *analysis.Analyzer {
	var checks []*analysis.Analyzer
	names := map[string]bool{}
	for _, a := range staticcheckAnalyzers() {
		if enabled(a.Analyzer.Name, conf.Checks) {
			checks = append(checks, collecting(a.Analyzer))
			names[strings.ToLower(a.Analyzer.Name)] = true
		}
	}
	requires := append(slices.Clone(checks), directives.Analyzer)
	if enabled(unused.Analyzer.Analyzer.Name, conf.Checks) {
		requires = append(requires, unused.Analyzer.Analyzer)
	}
	return &analysis.Analyzer{
		Name:     "staticcheck",
		Doc:      "the checks of staticcheck",
		Requires: requires,
		Run: func(pass *analysis.Pass) (any, error) {
			var found []analysis.Diagnostic
			for _, a := range checks {
				found = append(found, pass.ResultOf[a].([]analysis.Diagnostic)...)
			}
			ignores := pass.ResultOf[directives.Analyzer].([]lint.Directive)
			found = notIgnored(pass, found, ignores, names)
			if result, ok := pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result); ok {
				found = append(found, unusedOf(pass, result)...)
			}
			for _, d := range found {
				d.Message += " (" + d.Category + ")"
				pass.Report(d)
			}
			return nil, nil
		},
	}
}

// collecting returns a copy of a whose findings are its result.
func collecting(a *analysis.Analyzer) *analysis.Analyzer {
	with := *a
	with.ResultType = reflect.TypeFor[[]analysis.Diagnostic]()
	with.Run = func(pass *analysis.Pass) (any, error) {
		var found []analysis.Diagnostic
		own := *pass
		own.Report = func(d analysis.Diagnostic) {
			d.Category = a.Name
			found = append(found, d)
		}
		_, err := a.Run(&own)
		return found, err
	}
	return &with
}

// enabled reports whether the list of a staticcheck.conf enables the check. The last entry that
// matches the check decides.
func enabled(check string, list []string) bool {
	result := false
	for _, entry := range list {
		pattern, off := strings.CutPrefix(entry, "-")
		if matches(strings.ToLower(pattern), strings.ToLower(check)) {
			result = !off
		}
	}
	return result
}

// matches reports whether pattern matches check. The pattern "s*" matches s1000 and not sa1000.
func matches(pattern, check string) bool {
	prefix, many := strings.CutSuffix(pattern, "*")
	switch {
	case pattern == "all" || pattern == "*":
		return true
	case !many:
		return pattern == check
	case strings.ContainsFunc(prefix, unicode.IsDigit):
		return strings.HasPrefix(check, prefix)
	default:
		return prefix == strings.TrimRightFunc(check, unicode.IsDigit)
	}
}

// notIgnored returns the findings that no comment of the source silences, and a finding for each
// comment that silences nothing, or has no reason. The map has the enabled checks in lower case.
func notIgnored(
	pass *analysis.Pass, found []analysis.Diagnostic, ignores []lint.Directive, names map[string]bool,
) []analysis.Diagnostic {
	var wrong []analysis.Diagnostic
	for _, ignore := range ignores {
		file := ignore.Command == "file-ignore"
		if !file && ignore.Command != "ignore" {
			continue
		}
		if len(ignore.Arguments) < 2 {
			wrong = append(wrong, analysis.Diagnostic{
				Pos: ignore.Node.Pos(), Category: "compile",
				Message: "malformed linter directive; missing the required reason field?",
			})
			continue
		}
		at := report.DisplayPosition(pass.Fset, ignore.Node.Pos())
		silenced := strings.Split(strings.ToLower(ignore.Arguments[0]), ",")
		matched := false
		found = slices.DeleteFunc(found, func(d analysis.Diagnostic) bool {
			p := report.DisplayPosition(pass.Fset, d.Pos)
			ignored := p.Filename == at.Filename && (file || p.Line == at.Line) &&
				slices.ContainsFunc(silenced, func(pattern string) bool {
					is, _ := path.Match(pattern, strings.ToLower(d.Category))
					return is
				})
			matched = matched || ignored
			return ignored
		})
		if !file && !matched && mustMatch(silenced, names) {
			wrong = append(wrong, analysis.Diagnostic{
				Pos: ignore.Directive.Pos(), Category: "staticcheck",
				Message: "this linter directive didn't match anything; should it be removed?",
			})
		}
	}
	return append(found, wrong...)
}

// mustMatch reports whether a comment that silences the checks must match a finding. It need not if
// all its checks are patterns, or disabled. A comment for unused code need not either, since other
// variants of the package may have the finding.
func mustMatch(silenced []string, names map[string]bool) bool {
	return !slices.Contains(silenced, "u1000") &&
		slices.ContainsFunc(silenced, func(check string) bool { return names[check] })
}

// unusedOf returns the findings of unused code. The go command reports findings about the variant
// of a package that has its tests, and that variant has all uses of an object.
func unusedOf(pass *analysis.Pass, result unused.Result) []analysis.Diagnostic {
	type object struct {
		file string
		line int
		name string
	}
	of := func(o unused.Object) object {
		return object{filepath.Base(o.Position.Filename), o.Position.Line, o.Name}
	}
	used := map[object]bool{} // a generic object and its instances are several objects with one key
	for _, o := range result.Used {
		used[of(o)] = true
	}
	var found []analysis.Diagnostic
	for _, o := range result.Unused {
		if !used[of(o)] {
			found = append(found, analysis.Diagnostic{
				Pos: posOf(pass, o.Position), Category: unused.Analyzer.Analyzer.Name,
				Message: fmt.Sprintf("%s %s is unused", o.Kind, o.Name),
			})
		}
	}
	return found
}

// posOf returns the place of the pass's files that p describes.
func posOf(pass *analysis.Pass, p token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.FileStart); file.Name() == p.Filename {
			return file.Pos(p.Offset)
		}
	}
	return token.NoPos
}

package checks

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// check returns an analyzer that runs on the result of another analyzer. Comments of the source
// silence its reports.
func check[T any](name string, input *analysis.Analyzer, run func(*analysis.Pass, T), doc string) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: name, Doc: doc, URL: url, Requires: []*analysis.Analyzer{input},
		Run: func(pass *analysis.Pass) (any, error) {
			own := *pass
			own.Report = func(d analysis.Diagnostic) {
				if !silenced(pass, name, d.Pos) && (generatedToo || !generated(pass, d.Pos)) {
					pass.Report(d)
				}
			}
			result := pass.ResultOf[input].(T)
			if fs, ok := any(result).(*flows); ok { // drivers run checks concurrently
				fs.turn.Lock()
				defer fs.turn.Unlock()
				fs.follow()
				if !fs.counted {
					fs.counted = true
					fs.countLeftOut()
				}
			}
			run(&own, result)
			return nil, nil
		},
	}
}

// generatedToo is set by ReportGenerated.
var generatedToo bool

// ReportGenerated makes the checks report mistakes in generated files too. The generator has the
// mistake, and one of them makes many reports. Call it before the analysis.
func ReportGenerated(too bool) { generatedToo = too }

// generated reports whether pos is in a generated file.
func generated(pass *analysis.Pass, pos token.Pos) bool {
	for _, f := range pass.Files {
		if f.FileStart <= pos && pos <= f.FileEnd {
			return ofGenerator(f)
		}
	}
	return false
}

// generatedBy matches the comment of a generated file, as ast.IsGenerated does.
var generatedBy = regexp.MustCompile(`(?m)^// Code generated (by cmd/cgo;)?.* DO NOT EDIT\.$`)

// ofGenerator reports whether a generator has written a file. The command cgo is none: it adds to a
// file of people that imports "C".
func ofGenerator(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			for _, m := range generatedBy.FindAllStringSubmatch(c.Text, -1) {
				if c.Pos() < f.Package && m[1] == "" {
					return true
				}
			}
		}
	}
	return false
}

// ignore matches a comment that silences one check, for a reason.
var ignore = regexp.MustCompile(`^//lockvet:ignore (\w+) +\S`)

// nolint matches a comment that silences linters. golangci-lint has the same.
var nolint = regexp.MustCompile(`^// ?nolint(?::([\w,-]+))?(?:\s|$)`)

// silenced reports whether a comment silences the check for the line of pos. Such a comment is at
// the end of this line, or one of the comments alone on the lines before.
func silenced(pass *analysis.Pass, name string, pos token.Pos) bool {
	at := pass.Fset.Position(pos)
	for _, f := range pass.Files {
		if pos < f.FileStart || f.FileEnd < pos {
			continue
		}
		for _, group := range f.Comments {
			above := pass.Fset.Position(group.End()).Line == at.Line-1
			for _, c := range group.List {
				sameLine := pass.Fset.Position(c.Pos()).Line == at.Line
				if silences(c.Text, name) && (sameLine || above && alone(pass, c)) {
					return true
				}
			}
		}
	}
	return false
}

func silences(comment, name string) bool {
	if m := ignore.FindStringSubmatch(comment); m != nil {
		return m[1] == name
	}
	m := nolint.FindStringSubmatch(comment)
	if m == nil {
		return false
	}
	linters := strings.Split(m[1], ",")
	return m[1] == "" || slices.Contains(linters, "all") || slices.Contains(linters, "lockvet") ||
		slices.Contains(linters, name)
}

// alone reports whether only space precedes a comment on its line.
func alone(pass *analysis.Pass, comment *ast.Comment) bool {
	at := pass.Fset.PositionFor(comment.Pos(), false) // in the file that was parsed, as of cgo
	text, err := pass.ReadFile(at.Filename)
	if err != nil || at.Offset > len(text) {
		return false
	}
	return strings.TrimSpace(string(text[at.Offset-at.Column+1:at.Offset])) == ""
}

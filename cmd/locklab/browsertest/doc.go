// Package browsertest looks at the page of the lab, at the page of debug/locks and at all Markdown
// pages in a real browser. It is a module of its own, so that no user of the locks gets a browser
// driver with them.
//
// The variable LOCKS_SHOTS is a pattern of the names of the screenshots that the tests keep below
// artifacts. The name picture stands for docs/lab.png:
//
//	LOCKS_SHOTS='^picture$' go test -run ThePageInABrowser ./cmd/locklab/browsertest
package browsertest

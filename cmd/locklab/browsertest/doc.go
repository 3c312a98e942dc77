// Package browsertest looks at the page of the lab in a real browser. It is a module of its
// own, so that no user of the locks gets a browser driver with them.
package browsertest

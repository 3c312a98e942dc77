// Package comingfrom has tests only. They are the programs of the pages docs/guides/coming-from for
// sync, golang.org/x/sync and go-deadlock.
package comingfrom

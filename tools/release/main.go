// Command release keeps the modules of this repository releasable, and releases them.
//
//	go run ./tools/release check            what .ci/run checks: go.mod files, versions, lists of the API
//	go run ./tools/release api              rewrite the lists of the exported API in api/
//	go run ./tools/release tidy             go mod tidy -diff in every module
//	go run ./tools/release build            build every library without the workspace
//	go run ./tools/release versions v0.2.0  let all modules require v0.2.0 of each other
//	go run ./tools/release tag v0.2.0       check all of it, and tag every public module
//	go run ./tools/release -n tag v0.2.0    check all of it, and print the tags
//
// A library module has replace directives for the modules beside it. Go ignores them in the
// modules of users. A module with a command has none, because "go install" refuses such a module.
// In such a module, work inside the workspace, or use tidy and build of this command.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"golang.org/x/mod/semver"

	"github.com/jucgo/locks/tools/internal/workspace"
)

func main() {
	dry := flag.Bool("n", false, "print the tags and make none")
	flag.Parse()
	if err := run(flag.Args(), *dry); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, dry bool) error {
	w, err := workspace.Open(".")
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "check":
		versions, err := selected(w)
		if err != nil {
			return err
		}
		return errors.Join(checkModules(w, ""), checkVersions(w, versions), checkAPI(w))
	case len(args) == 1 && args[0] == "api":
		return writeAPI(w)
	case len(args) == 1 && args[0] == "tidy":
		return tidy(w)
	case len(args) == 1 && args[0] == "build":
		return build(w)
	case len(args) == 2 && !semver.IsValid(args[1]):
		return fmt.Errorf("release: version %q: want a version like v0.2.0", args[1])
	case len(args) == 2 && args[0] == "versions":
		return setVersions(w, args[1])
	case len(args) == 2 && args[0] == "tag":
		return tag(w, args[1], dry)
	}
	return errors.New("usage: release [-n] check | api | tidy | build | versions VERSION | tag VERSION")
}

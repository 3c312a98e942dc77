// Package fileopen registers file: with package open. Import it for its effect.
package fileopen

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/open/driver"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "file", Form: "file:DIRECTORY",
		Kinds: []string{"plain", "fenced"}, More: []string{"perm"},
		Open: open,
	})
}

func open(_ context.Context, o *driver.Opening) error {
	var opts []filelock.Option
	if o.Kind() == "fenced" {
		opts = append(opts, filelock.WithTokens())
	}
	if text, ok := o.Params["perm"]; ok {
		perm, err := strconv.ParseUint(text, 8, 32)
		if err != nil || fs.FileMode(perm)&^fs.ModePerm != 0 {
			return driver.Reason("the parameter perm must be an octal number from 0 to 0777")
		}
		opts = append(opts, filelock.WithPerm(fs.FileMode(perm)))
	}
	path, err := o.Local()
	if err != nil {
		return err
	}
	c, err := filelock.New(path, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", lease.ErrUnreachable, err)
	}
	o.OnClose(c.Close)
	o.Locker, o.Names = c.Locker, c.Names
	return nil
}

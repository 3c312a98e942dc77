package open

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/named"
)

func openMemory(_ context.Context, o *opening) error {
	var opts []named.Option
	if o.kind() == "fair" {
		opts = append(opts, named.WithPolicy(fair.FIFO))
	}
	o.locker = named.New(opts...).Locker
	return nil
}

func openFiles(_ context.Context, o *opening) error {
	var opts []filelock.Option
	if o.kind() == "fenced" {
		opts = append(opts, filelock.WithTokens())
	}
	if text, ok := o.params["perm"]; ok {
		perm, err := strconv.ParseUint(text, 8, 32)
		if err != nil || fs.FileMode(perm)&^fs.ModePerm != 0 {
			return reason("the parameter perm must be an octal number from 0 to 0777")
		}
		opts = append(opts, filelock.WithPerm(fs.FileMode(perm)))
	}
	c, err := filelock.New(o.path, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	o.closeLast(c.Close)
	o.locker, o.names = c.Locker, c.Names
	return nil
}

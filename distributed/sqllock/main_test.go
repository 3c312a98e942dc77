package sqllock_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	quiet()
	testbed.Play(roles)
	flag.Parse()
	if flag.Lookup("test.parallel").DefValue == flag.Lookup("test.parallel").Value.String() {
		flag.Set("test.parallel", "16") // they wait for leases and servers most of the time
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(ignored...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	common.end()
	os.Exit(code)
}

// ignored are the goroutines of the servers that all tests share.
var ignored = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/jucgo/locks/internal/test/testbed.Start.func1"),
	testbed.Children(),
	goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
}

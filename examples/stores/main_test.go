package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/testbed"
)

// asProgram makes the test's binary act as the program.
const asProgram = "LOCKS_EXAMPLE_TEST"

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"both": both})
	if os.Getenv(asProgram) != "" || os.Getenv(processVariable) != "" {
		main()
		return
	}
	os.Unsetenv(storeVariable)
	goleak.VerifyTestMain(m, testbed.Children())
}

// call runs the program in this process, and returns what it says.
func call(tb testing.TB, args ...string) (string, error) {
	tb.Helper()
	var out, errs bytes.Buffer
	err := run(tb.Context(), args, strings.NewReader(""), &out, &errs)
	return out.String(), err
}

// temporaries has the test's temporary files in a directory, which must be empty at the end.
func temporaries(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "the program leaves something behind")
	})
}

var sold = regexp.MustCompile(`(?m)^(?:(process \d), )?worker \d sold ticket (\d+)(?:, fencing token (\d+))?$`)

// tickets checks the sales that out tells of, and returns how many each process made.
func tickets(tb testing.TB, out string, n int, tokens bool) map[string]int {
	tb.Helper()
	by := make(map[string]int)
	seen := make(map[string]bool)
	for _, sale := range sold.FindAllStringSubmatch(out, -1) {
		by[sale[1]]++
		require.False(tb, seen[sale[2]], "ticket %s was sold twice", sale[2])
		seen[sale[2]] = true
		token, _ := strconv.ParseUint(sale[3], 10, 64)
		require.Equal(tb, tokens, token > 0, sale[0])
	}
	require.Len(tb, seen, n, out)
	return by
}

func TestOneProcessDoesAllWork(t *testing.T) {
	temporaries(t)
	out, err := call(t)
	require.NoError(t, err)
	tickets(t, out, 12, false)
	require.Contains(t, out, "12 tickets sold, none twice, none left out; the lock went from one worker to another ")
	require.Contains(t, out, "somebody else has: false")
	require.Contains(t, out, "Multi: two workers took")
	require.Contains(t, out, "cannot be lost")
}

func TestEveryStoreDoesTheSameWork(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			spec := s.spec(t)
			temporaries(t)
			for range 2 { // the second time it finds what the first has left
				out, err := call(t, "-store", spec)
				require.NoError(t, err, out)
				tickets(t, out, 12, true)
				require.Contains(t, out, "12 tickets sold, none twice, none left out; "+
					"the lock went from one worker to another ")
				require.Contains(t, out, "somebody else has: false")
				require.Contains(t, out, "Multi: two workers took")
				require.Contains(t, out, "The store was closed under its holder, who was told")
				require.NotContains(t, out, secret)
			}
		})
	}
}

func TestProcessesTakeTurnsOnEveryStore(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			spec := s.spec(t)
			temporaries(t)
			// The first is more than one process may have in a row, lease.DefaultMaxLocalHandoffs.
			for _, n := range []int{100, 300, 900} {
				out, err := call(t, "-store", spec, "-processes", "3", "-tickets", fmt.Sprint(n))
				require.NoError(t, err, out)
				by := tickets(t, out, n, true)
				require.Contains(t, out, fmt.Sprint(n)+" tickets sold, none twice, none left out; "+
					"the lock went from one process to another ")
				require.NotContains(t, out, ready)
				require.NotContains(t, out, secret)
				// Not every store has an order: the third one may come too late.
				if len(by) >= 2 {
					require.NotContains(t, out, " to another 0 times")
					return
				}
			}
			// The others may come too late for a hundred, on a busy machine.
			require.Fail(t, "only one process had turns")
		})
	}
}

func TestWrongArgumentsAreErrorsThatTellNoPassword(t *testing.T) {
	temporaries(t)
	for _, c := range []struct {
		args string
		says string
	}{
		{"-store foo:", "must begin with one of mem:, file:, sqlite:, "},
		{"-store me:geheim@host", "must begin with one of mem:, "},
		{"-store geheim@host", "must begin with one of mem:, "},
		{"-store mem:geheim", "mem: "},
		{"-store redis:me:geheim@host:1", "the form is redis://"},
		{"-store postgres://me:ge%heim@host/x", "%"},
		{"-store mysql://me:geheim@host/x?colour=red", `the unknown parameter "colour"`},
		{"-processes 2", "needs a store that processes share"},
		{"-processes 0", "must be 1 at least"},
		{"-timeout 0s", "must be more than 0"},
		{"geheim", "arguments that are no flags"},
		{"-geheim=x", "wrong arguments"},
	} {
		out, err := call(t, strings.Fields(c.args)...)
		require.ErrorContains(t, err, c.says, c.args)
		require.NotContains(t, err.Error(), secret, c.args)
		require.NotContains(t, err.Error(), "heim", c.args)
		require.Empty(t, out)
	}
}

func TestAnUnreachableStoresErrorHidesThePassword(t *testing.T) {
	temporaries(t)
	addr := fmt.Sprint("127.0.0.1:", testbed.Port(t)) // nobody is there
	for _, spec := range []string{
		"redis://me:" + secret + "@" + addr + "/0",
		"postgres://me:" + secret + "@" + addr + "/x",
		"mysql://me:" + secret + "@" + addr + "/x",
		"zk://" + addr,
		"etcd://" + addr + "," + addr,
		"consul://" + addr,
		"nats://" + addr + "/locks",
	} {
		out, err := call(t, "-store", spec)
		require.ErrorContains(t, err, addr, spec)
		require.NotContains(t, err.Error(), secret)
		require.Empty(t, out)
	}
}

func TestARefusedPasswordIsNotInTheError(t *testing.T) {
	_, err := call(t, "-store", "redis://:"+secret+"@"+startRedisServer(t, "--requirepass", "another")+"/0")
	require.ErrorContains(t, err, "WRONGPASS")
	require.NotContains(t, err.Error(), secret)
}

func TestErrorsAreOneLineAndAnExitCode(t *testing.T) {
	addr := fmt.Sprint("127.0.0.1:", testbed.Port(t))
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"-store", "foo:"}, 1},
		{[]string{"-store", "postgres://me@" + addr + "/x"}, 1},
		{[]string{"-bogus"}, 2},
		{[]string{"-help"}, 0},
	} {
		cmd := exec.Command(os.Args[0], c.args...)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := cmd.Run(); c.code == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorAs(t, err, &exit)
			require.Equal(t, c.code, exit.ExitCode())
		}
		if c.code == 1 {
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
			require.True(t, strings.HasPrefix(errs.String(), "stores: "), errs.String())
		} else {
			require.Contains(t, errs.String(), "Usage:")
		}
		require.Empty(t, out.String())
	}
}

func TestTheStoreMayBeGivenByTheEnvironment(t *testing.T) {
	t.Setenv(storeVariable, "foo:")
	_, err := call(t)
	require.ErrorContains(t, err, "must begin with one of")
	_, err = call(t, "-store", "mem:")
	require.NoError(t, err)
}

// watcher calls f when something was written that contains text.
type watcher struct {
	text string
	f    func()
}

func (w watcher) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.f()
	}
	return len(p), nil
}

func TestAProcessThatFailsEndsTheOthers(t *testing.T) {
	temporaries(t)
	// The ledger cannot be made in a directory that is not there.
	w := &work{ledger: ledger{filepath.Join(t.TempDir(), "missing", "ledger")}, out: io.Discard}
	var errs bytes.Buffer
	s, err := parse([]string{"-processes", "3"}, io.Discard)
	require.NoError(t, err)
	err = w.startOthers(t.Context(), s, "file:"+t.TempDir(), &errs)
	require.ErrorContains(t, err, "process ")
	require.Contains(t, errs.String(), "no such file")
}

func TestTooLittleTimeIsNamedByTheError(t *testing.T) {
	temporaries(t)
	_, err := call(t, "-tickets", "1000000", "-timeout", "200ms")
	require.ErrorContains(t, err, "-timeout 200ms")
}

// none is a lock that lets everybody in.
type none struct{}

func (none) LockContext(context.Context) error            { return nil }
func (none) TryLockContext(context.Context) (bool, error) { return true, nil }
func (none) UnlockContext(context.Context) error          { return nil }

// provider is a [locks.Provider] of such locks.
type provider struct{}

func (provider) Locker(string) locks.TryLocker { return none{} }

func TestALockThatExcludesNobodyIsFoundOut(t *testing.T) {
	w := &work{
		locks:   provider{},
		tickets: 200, workers: 8, out: io.Discard, ledger: ledger{filepath.Join(t.TempDir(), "ledger")},
	}
	require.NoError(t, w.sell(t.Context()))
	require.ErrorContains(t, w.check(), "the lock did not exclude")
	require.ErrorContains(t, w.try(t.Context()), "two have the lock at once")
}

func TestTheLedgerRefusesASmallerToken(t *testing.T) {
	l := ledger{filepath.Join(t.TempDir(), "ledger")}
	for i, token := range []uint64{3, 3, 5} {
		require.NoError(t, l.add(sale{i + 1, token, "worker 1"}))
	}
	require.ErrorIs(t, l.add(sale{4, 4, "worker 2"}), errStale)
	sales, err := l.check(3)
	require.NoError(t, err)
	require.Equal(t, sale{3, 5, "worker 1"}, sales[2])
	_, err = l.check(4)
	require.ErrorContains(t, err, "3 tickets were sold, not 4")
}

func TestTheFirstErrorEndsTheOthers(t *testing.T) {
	failed := errors.New("failed")
	err := together(t.Context(), 3, func(ctx context.Context, i int) error {
		if i == 2 {
			return failed
		}
		<-ctx.Done()
		return ctx.Err()
	})
	require.Equal(t, failed, err)
}

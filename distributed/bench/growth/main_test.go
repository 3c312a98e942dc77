package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testbed.Children()) }

// measured runs the command, and returns the cells of its tables by their titles.
func measured(t *testing.T, args ...string) map[string][][]string {
	t.Helper()
	s, err := parse(args, io.Discard)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), s, &out, io.Discard))
	tables := make(map[string][][]string)
	title := ""
	for line := range strings.Lines(out.String()) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "| ---"), line == "":
		case !strings.HasPrefix(line, "|"):
			title = line
		default:
			tables[title] = append(tables[title], strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return tables
}

// cell returns the cell of a row by the begin of its column's name.
func cell(t *testing.T, table [][]string, row int, column string) string {
	t.Helper()
	for i, name := range table[0] {
		if strings.HasPrefix(name, column) {
			return table[row][i]
		}
	}
	t.Fatalf("no column %s in %v", column, table[0])
	return ""
}

func TestStoresInMemoryAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables := measured(t, "-url", "fake:", "-url", "mem:", "-n", "3,250", "-ttl", "2s", "-watched", "200ms")
		require.Len(t, tables, len(phases))
		for _, phase := range phases {
			table := tables[titles[phase]]
			require.Len(t, table, 1+2*2, phase)
			for _, row := range table {
				require.Len(t, row, len(table[0]), phase)
			}
		}
		held := tables[titles["held"]]
		require.Equal(t, "1.00", cell(t, held, 1, "messages of an acquisition"))
		require.Equal(t, "1", cell(t, held, 1, "a renewal of all"))
		require.Equal(t, "3", cell(t, held, 2, "a renewal of all"), "a hundred holds each")
		require.Equal(t, "0", cell(t, held, 2, "goroutines"))
		require.Equal(t, "2.00", cell(t, tables[titles["names"]], 2, "messages of a pair"))
		require.Equal(t, "0", cell(t, tables[titles["crowd"]], 2, "messages a second"))
		require.Equal(t, "250", cell(t, tables[titles["crowd"]], 4, "goroutines"), "of mem")
	})
}

func TestAServerIsMeasuredByWhatGoesThrough(t *testing.T) {
	port := testbed.Port(t)
	testbed.Start(t, exec.Command(testbed.Lookup(t, "redis-server"), "--port", fmt.Sprint(port), "--save", "",
		"--bind", "127.0.0.1", "--dir", t.TempDir()))
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	require.Eventually(t, func() bool { return admin.Ping(context.Background()).Err() == nil }, time.Minute, time.Millisecond)
	tables := measured(t, "-url", "redis://"+addr, "-n", "250", "-ttl", "3s", "-watched", "200ms")
	held := tables[titles["held"]]
	require.Equal(t, "1.", cell(t, held, 1, "messages of an acquisition")[:2], "and a few that tell of the client")
	require.NotEqual(t, "-", cell(t, held, 1, "Names"))
	require.Equal(t, "2.", cell(t, tables[titles["names"]], 1, "messages of a pair")[:2])
	require.Empty(t, admin.Keys(context.Background(), prefix+"*").Val(), "nothing is left")
}

func TestFlagsAreChecked(t *testing.T) {
	for _, args := range []string{
		"", "-url fake: -n 0", "-url fake: -n x", "-url fake: -phases nothing", "-url fake: -ttl 1ms", "-url fake: -workers 0",
		"-url fake: -watched 0s",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.Error(t, err, args)
	}
	_, err := parse([]string{"-h"}, io.Discard)
	require.True(t, errors.Is(err, flag.ErrHelp))
}

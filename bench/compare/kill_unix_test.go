//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInterruptionEndsAToolAndItsProcesses(t *testing.T) {
	for _, tool := range []string{"mvn", "java"} {
		t.Run(tool, func(t *testing.T) {
			install(t, allTools...)
			l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			require.NoError(t, err)
			defer l.Close()
			limit := time.Now().Add(2 * time.Minute) // only a hang reaches it
			require.NoError(t, l.SetDeadline(limit))
			t.Setenv(fakeHang, tool)
			t.Setenv(hangAt, l.Addr().String())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var stdout, stderr bytes.Buffer
			code := make(chan int, 1)
			go func() { code <- run(ctx, others, &stdout, &stderr) }()
			var processes []net.Conn
			for range 2 {
				conn, err := l.Accept()
				require.NoError(t, err)
				defer conn.Close()
				require.NoError(t, conn.SetDeadline(limit))
				processes = append(processes, conn)
			}
			cancel()
			assert.Equal(t, exitInterrupted, <-code)
			for _, conn := range processes { // It ends with its process.
				_, err := io.Copy(io.Discard, conn)
				assert.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			}
			assert.Empty(t, stdout.String())
			assert.Contains(t, stderr.String(), "interrupted")
		})
	}
}

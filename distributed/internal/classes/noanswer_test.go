package classes_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
)

func TestARequestWithoutAnAnswerSaysWhatIsKnown(t *testing.T) {
	for what, c := range map[string]struct {
		err                         error
		read                        bool
		refused, login, unavailable bool
		unreachable                 bool
	}{
		"no connection":            {&net.OpError{Op: "dial", Err: errors.New("refused")}, false, true, false, true, true},
		"a server without TLS":     {tls.RecordHeaderError{Msg: "first record"}, false, true, false, true, true},
		"a stranger":               {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true, true, true, false, false},
		"a certificate that ended": {alert("tls: expired certificate"), false, true, true, false, false},
		"another alert":            {alert("tls: internal error"), false, false, false, false, false},
		"a connection that ended":  {&net.OpError{Op: "read", Err: errors.New("reset")}, false, false, false, false, false},
		"a read that ended":        {&net.OpError{Op: "read", Err: errors.New("reset")}, true, false, false, true, true},
	} {
		err := classes.NoAnswer(c.err, c.read)
		require.EqualError(t, err, c.err.Error(), what)
		require.Equal(t, c.refused, errors.Is(err, lease.ErrRefused), what)
		require.Equal(t, c.login, errors.Is(err, lease.ErrLogin), what)
		require.Equal(t, c.unavailable, errors.Is(err, lease.ErrUnavailable), what)
		require.Equal(t, c.unreachable, errors.Is(err, lease.ErrUnreachable), what)
	}
}

func alert(text string) error { return &net.OpError{Op: "remote error", Err: errors.New(text)} }

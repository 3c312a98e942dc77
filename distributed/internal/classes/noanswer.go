package classes

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// NoAnswer marks err, the error of an HTTP request without an answer, with the known part of the
// outcome. Where no connection was made, nothing was done. The same is true where one side does not
// accept the certificate of the other. A write over a connection may have been carried out.
func NoAnswer(err error, read bool) error {
	var op *net.OpError
	var stranger *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	isOp := errors.As(err, &op)
	switch {
	case errors.As(err, &stranger), isOp && op.Op == "remote error" && refusesCertificate(op.Err.Error()):
		return Connection.Mark(err)
	case isOp && op.Op == "dial", errors.As(err, &noTLS):
		return Unreached.Mark(err)
	case read:
		return driver.Mark(err, driver.ErrUnavailable, driver.ErrUnreachable)
	}
	return err
}

// refusesCertificate reports whether an alert of TLS refuses the certificate of the client.
func refusesCertificate(alert string) bool {
	return strings.Contains(alert, "certificate") || strings.Contains(alert, "access denied")
}

package driver

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// TLSByParameter returns the configuration that the parameters ask for, or nil if the parameter tls
// is not true.
func (o *Opening) TLSByParameter() (*tls.Config, error) {
	mode, err := o.OneOf("tls", "false", "true")
	if err != nil {
		return nil, err
	}
	return o.TLS(mode == "true")
}

// TLS returns the configuration that the parameters ask for, or nil if TLS is off.
func (o *Opening) TLS(on bool) (*tls.Config, error) {
	ca, cert, key := o.Params["cacert"], o.Params["cert"], o.Params["key"]
	if !on {
		if ca+cert+key != "" {
			return nil, Reason("the parameters cacert, cert and key need TLS")
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, Reason("the parameter cacert must be a file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Reason("the parameter cacert must be a file with certificates in PEM format")
		}
	}
	if (cert == "") != (key == "") {
		return nil, Reason("the parameters cert and key need each other")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, Reason("the parameters cert and key must be files in PEM format that fit: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Package clienttls reads what the URL of a service says of TLS: the options tls, ca, cert and key, which mean the same for every
// service. What the machine trusts decides unless ca names a file. It imports nothing of this project.
package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// IsOption reports whether [Read] reads an option of this name.
func IsOption(name string) bool {
	return name == "tls" || name == "ca" || name == "cert" || name == "key"
}

// Read returns the configuration of TLS 1.2 and later that a URL's query asks for; nil = connections are plain. Whoever dials sets
// the server's name. The files, in PEM, are read at once, so that what is wrong with them shows before anything starts; a file alone
// means tls=true, too.
func Read(q url.Values) (*tls.Config, error) {
	ca, cert, key := q.Get("ca"), q.Get("cert"), q.Get("key")
	files := ca != "" || cert != "" || key != ""
	switch q.Get("tls") {
	case "":
		if !files {
			return nil, nil //nolint:nilnil // plain connections have none, which is no error
		}
	case "false":
		if files {
			return nil, errors.New("tls=false: expected true, or no ca, cert and key")
		}
		return nil, nil //nolint:nilnil // as above
	case "true":
	default:
		return nil, errors.New("tls: expected true or false")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := trust(c, ca); err != nil {
		return nil, err
	}
	return c, present(c, cert, key)
}

// trust has a file say whom servers may be certified by; "" = those that the machine trusts.
func trust(c *tls.Config, file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("ca: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("ca: %s contains no PEM certificate", file)
	}
	return nil
}

// present has connections say who we are. The files are read again for each, so that one
// that is renewed needs no restart.
func present(c *tls.Config, cert, key string) error {
	if cert == "" && key == "" {
		return nil
	}
	if cert == "" || key == "" {
		return errors.New("expected cert and key, or neither")
	}
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert, key: %w", err)
		}
		return &pair, nil
	}
	if _, err := read(); err != nil {
		return err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	return nil
}

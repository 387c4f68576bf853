package zookeeper

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"

	"curt/internal/clienttls"
)

// Config says where the counters are.
type Config struct {
	Servers        []string    // host:port
	Path           string      // of the node that the counters are below; one for each installation
	User, Password string      // of the scheme digest; "" = nodes that anybody may change
	TLS            *tls.Config // without the server's name, which is the host of each; nil = connections are in clear
}

// The ports that the documentation of ZooKeeper has: it has no default for the one with TLS.
const (
	defaultPort       = "2181"
	defaultSecurePort = "2281"
)

// Parse reads a URL: zookeeper://user:password@host:port,host:port/path?ca=FILE&cert=FILE&key=FILE. The options are those of
// [clienttls.Read], whose files it reads. What is wrong with the URL is said without its password.
func Parse(text string) (c Config, err error) {
	wrong := errors.New("expected zookeeper://host:2181,host:2181/path, with user:password@ for digest authentication, ?tls=true for TLS")
	rest, found := strings.CutPrefix(text, "zookeeper://")
	rest, query, _ := strings.Cut(rest, "?")
	if !found || strings.ContainsRune(text, '#') {
		return c, wrong
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return c, wrong
	}
	for name := range options {
		if !clienttls.IsOption(name) { // it may be a part of a password
			return c, errors.New("unknown option behind the question mark; expected tls, ca, cert or key")
		}
	}
	port := defaultPort
	if c.TLS, err = clienttls.Read(options); err != nil {
		return Config{}, err //nolint:wrapcheck // names the option
	}
	if c.TLS != nil {
		port = defaultSecurePort
	}
	servers, below, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(servers, '@'); at >= 0 {
		user, password, both := strings.Cut(servers[:at], ":")
		var errs [2]error
		c.User, errs[0] = url.PathUnescape(user)
		c.Password, errs[1] = url.PathUnescape(password)
		if errors.Join(errs[:]...) != nil || !both || c.User == "" || strings.Contains(c.User, ":") {
			return Config{}, wrong
		}
		servers = servers[at+1:]
	}
	for server := range strings.SplitSeq(servers, ",") {
		address, err := withPort(server, port)
		if err != nil {
			return Config{}, wrong
		}
		c.Servers = append(c.Servers, address)
	}
	if c.Path = "/" + below; c.Path == "/" || path.Clean(c.Path) != c.Path || strings.ContainsFunc(c.Path, unfit) || strings.HasPrefix(c.Path, "/zookeeper/") || c.Path == "/zookeeper" {
		return Config{}, errors.New("expected the path of a node of its own behind the hosts, such as /curt")
	}
	return c, nil
}

// withPort returns host:port of a server, which may have no port.
func withPort(server, otherwise string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port = server, otherwise
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" || strings.ContainsAny(host, ":[] ") && net.ParseIP(host) == nil {
		return "", errors.New("no host and port")
	}
	return net.JoinHostPort(host, port), nil
}

// unfit finds what ZooKeeper refuses in paths, and more of it than that.
func unfit(r rune) bool { return r <= ' ' || r >= 0x7f }

package zookeeper

import (
	"errors"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// Config says where the counters are.
type Config struct {
	Servers        []string // host:port
	Path           string   // of the node that the counters are below; one for each installation
	User, Password string   // of the scheme digest; "" = nodes that anybody may change
}

const defaultPort = "2181"

// Parse reads a URL: zookeeper://user:password@host:port,host:port/path. What is wrong with it
// is said without its password.
func Parse(text string) (c Config, err error) {
	wrong := errors.New("expected zookeeper://host:2181,host:2181/path, with user:password@ for digest authentication")
	rest, found := strings.CutPrefix(text, "zookeeper://")
	if !found || strings.ContainsAny(rest, "?#") {
		return c, wrong
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
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = server, defaultPort
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || strings.ContainsAny(host, ":[] ") && net.ParseIP(host) == nil {
			return Config{}, wrong
		}
		c.Servers = append(c.Servers, net.JoinHostPort(host, port))
	}
	if c.Path = "/" + below; c.Path == "/" || path.Clean(c.Path) != c.Path || strings.ContainsFunc(c.Path, unfit) || strings.HasPrefix(c.Path, "/zookeeper/") || c.Path == "/zookeeper" {
		return Config{}, errors.New("expected the path of a node of its own behind the hosts, such as /curt")
	}
	return c, nil
}

// unfit finds what ZooKeeper refuses in paths, and more of it than that.
func unfit(r rune) bool { return r <= ' ' || r >= 0x7f }

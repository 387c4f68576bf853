package blocklist

import (
	"crypto/sha256"
	"strings"

	"golang.org/x/net/publicsuffix"

	"curt/internal/weburl"
)

// question is a URL that lists are asked about.
type question struct {
	url   weburl.URL
	hosts [weburl.MaxHosts]string // the host, and the addresses that it carries
	n     int                     // hosts
	made  bool                    // x is
	x     expression              // of the first host
	more  []expression            // of the others, which few have
}

// expression returns that of host i.
func (q *question) expression(i int) *expression {
	if i == 0 {
		return &q.x
	}
	return &q.more[i-1]
}

func (q *question) about(u weburl.URL) {
	q.url = u
	q.n = len(u.AppendHosts(q.hosts[:0]))
}

// above returns the name above one, and false at the end, and above an address.
func above(name string) (string, bool) {
	_, up, ok := strings.Cut(name, ".")
	return up, ok && up != "" && !weburl.IsAddress(name)
}

// means reports whether an entry for name, which is host or above it, means host. It is
// asked when there is such an entry: the public suffix list takes longer than the lists.
func means(name, host string) bool {
	if name == host {
		return true
	}
	border, _ := publicsuffix.PublicSuffix(host)
	return len(name) > len(border)
}

// in returns the entry of a list that means the URL. An entry is a host with what is
// below it, up to the border that the public suffix list draws: "example.co.uk" means
// www.example.co.uk, and neither "co.uk" nor "github.io" means what is below them,
// because that belongs to others. An address means itself in every spelling, also inside
// an IPv6 address.
func (q *question) in(e *listVersion, s *seeds) (found string, ok bool) {
	if e == nil {
		return "", false
	}
	if found, ok = q.among(e, s, ofHost); !ok && e.reach[ofHash] != 0 {
		found, ok = q.hashed(e, s)
	}
	if ok {
		if _, except := q.among(e, s, exceptHost); except {
			return "", false
		}
	}
	return found, ok
}

// among asks for the entries of three kinds: base, for hosts, and the two behind it.
func (q *question) among(e *listVersion, s *seeds, base kind) (string, bool) {
	url, below := e.reach[base+1], e.reach[base+2]
	if e.reach[base] != 0 {
		for _, host := range q.hosts[:q.n] {
			for name, ok := host, true; ok; name, ok = above(name) {
				if e.has(s.digest(base, name)) && means(name, host) {
					return name, true
				}
			}
		}
	}
	if url|below == 0 {
		return "", false
	}
	if !q.made {
		q.made = true
		q.more = make([]expression, q.n-1)
		for i, host := range q.hosts[:q.n] {
			q.expression(i).of(q.url, host)
		}
	}
	for i := range q.n {
		x := q.expression(i)
		if at, ok := x.longest(e, s, base+1, url, 0); ok {
			return string(x.text()[:at]), true
		}
		host := q.hosts[i]
		for name, ok := host, below != 0; ok; name, ok = above(name) {
			from := len(host) - len(name)
			if at, ok := x.longest(e, s, base+2, below, from); ok && means(name, host) {
				return string(x.text()[from:at]), true
			}
		}
	}
	return "", false
}

// longest returns the last border up to which a list has the expression from from on;
// reach says which are worth a look.
func (x *expression) longest(e *listVersion, s *seeds, k kind, reach uint64, from int) (at int, found bool) {
	end, ok := x.host, true
	for n := 0; ok && reach>>n != 0; n++ {
		if reach>>n&1 != 0 && e.has(s.digestBytes(k, x.text()[from:end])) {
			at, found = end, true
		}
		end, ok = x.border(end)
	}
	return at, found
}

const (
	// hashedParents are how many names above a host, the shortest, are looked up by their
	// SHA-256, and hashedFolders how many beginnings of a path; both are Safe Browsing's.
	hashedParents = 4
	hashedFolders = 4
)

// hashed asks for the SHA-256 of
//
//   - the URL in normal form without its fragment: "https://www.evil.example/a/b?x=1",
//   - the host, and each of the four shortest names above it: "evil.example",
//   - each of these names with the path and query, with the path, and with the first four
//     beginnings of the path, in Safe Browsing's spelling: "evil.example/a/b?x=1",
//     "evil.example/a/b", "evil.example/", "evil.example/a/".
func (q *question) hashed(e *listVersion, s *seeds) (string, bool) {
	has := func(text []byte) bool {
		sum := sha256.Sum256(text)
		return e.has(s.digestBytes(ofHash, sum[:]))
	}
	href, _, _ := strings.Cut(q.url.Href(), "#")
	if has([]byte(href)) {
		return "SHA-256 of " + href, true
	}
	where, query := pathAndQuery(q.url)
	tail := appendPath(nil, where)
	ends := folders(tail)
	if ends = append(ends, len(tail)); query != "" {
		tail = escape(appendUnescaped(append(tail, '?'), query), len(tail), 0)
		ends = append(ends, len(tail))
	}
	for _, host := range q.hosts[:q.n] {
		skip := -hashedParents
		for up, ok := above(host); ok && means(up, host); up, ok = above(up) {
			skip++
		}
		n := 0
		for name, ok := host, true; ok && means(name, host); name, ok = above(name) {
			if n++; n > 1 && n <= skip+1 {
				continue
			}
			text := append([]byte(name), tail...)
			for _, end := range append([]int{0}, ends...) {
				if has(text[:len(name)+end]) {
					return "SHA-256 of " + string(text[:len(name)+end]), true
				}
			}
		}
	}
	return "", false
}

// folders returns where the first folders of a path end.
func folders(where []byte) []int {
	var ends []int
	for i, c := range where {
		if c == '/' && len(ends) < hashedFolders {
			ends = append(ends, i+1)
		}
	}
	return ends
}

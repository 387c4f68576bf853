package clicks

import (
	"bytes"
	"fmt"
	"net/url"
	"time"
)

// Detail says how much of a request's headers is kept of its click, in the click log and in
// what is sent on from there. Addresses never are, and statistics are the same.
type Detail uint8

const (
	// DetailStatistics keeps what statistics are made of: of the referrer its host, of the
	// query its UTM fields, of the user agent what it tells (see Agent) and how a bot calls
	// itself, of the languages the first. Of a request for no link nothing but that.
	DetailStatistics Detail = iota
	// DetailReferrerPath keeps the referrer's path, too, but not its query.
	DetailReferrerPath
	// DetailFull keeps user agent, referrer, languages and query as they were sent, and what
	// was asked for when there is no such link. The user agent and UTM fields lose what no
	// text has: see Plain.
	DetailFull
)

// ParseDetail returns the Detail of a name; "" is DetailStatistics.
func ParseDetail(name string) (Detail, error) {
	switch name {
	case "", "statistics":
		return DetailStatistics, nil
	case "referrer-path":
		return DetailReferrerPath, nil
	case "full":
		return DetailFull, nil
	}
	return 0, fmt.Errorf("no such detail of clicks: %q", name)
}

// listPatience is what one drain may spend on user agents that nobody has met before, a
// quarter of what kill -9 may take. Some 80 of them are looked up in it, which real traffic
// has in a minute; of a flood of invented ones the others are judged by what they say
// themselves.
const listPatience = 25 * time.Millisecond

// reducer leaves of a click what is kept. Owned by one goroutine.
type reducer struct {
	detail Detail
	agents *agents
	buf    []byte // of the click at hand
}

func newReducer(d Detail) reducer {
	r := reducer{detail: d, agents: newAgents()}
	r.agents.patience = listPatience
	return r
}

// reduce makes c what is kept of it, valid until the next call, and returns what its user
// agent tells.
func (r *reducer) reduce(c *Raw) told {
	who := r.agents.parse(c.UserAgent)
	r.buf = r.buf[:0]
	if r.detail == DetailFull {
		c.UserAgent, c.Query = r.plain(c.UserAgent), r.plainQuery(c.Query)
		return who
	}
	c.UserAgent = nil
	if c.Outcome == Orphan { // strangers choose what they ask for
		c.Domain, c.Code, c.Referrer, c.Language, c.Query = nil, nil, nil, nil, nil
		return who
	}
	c.Referrer = r.referrer(c.Referrer)
	begin := len(r.buf)
	r.buf = appendLanguage(r.buf, primaryLanguage(c.Language))
	c.Language = r.buf[begin:]
	query := c.Query
	c.Query = nil
	if fields, tagged := readUTM(query); tagged {
		begin = len(r.buf)
		r.buf = appendUTM(r.buf, &fields)
		c.Query = r.buf[begin:]
	}
	return who
}

// plain is Plain of a header.
func (r *reducer) plain(text []byte) []byte {
	if isPlainASCII(text) {
		return text
	}
	begin := len(r.buf)
	r.buf = append(r.buf, Plain(string(text))...)
	return r.buf[begin:]
}

// plainQuery leaves a query as it was sent but for UTM fields that have what Plain takes away,
// whether it is escaped or not.
func (r *reducer) plainQuery(query []byte) []byte {
	if !bytes.Contains(query, []byte("utm_")) || isPlainASCII(query) && !bytes.Contains(query, []byte("%")) {
		return query
	}
	begin := len(r.buf)
	for pair := range bytes.SplitSeq(query, []byte("&")) {
		if len(r.buf) > begin {
			r.buf = append(r.buf, '&')
		}
		name, value, _ := bytes.Cut(pair, []byte("="))
		sent := unescaped(string(value))
		if plain := Plain(sent); plain != sent && bytes.HasPrefix(name, []byte("utm_")) {
			r.buf = append(append(r.buf, Plain(string(name))...), '=')
			r.buf = append(r.buf, url.QueryEscape(plain)...)
			continue
		}
		r.buf = append(r.buf, pair...)
	}
	return r.buf[begin:]
}

// referrer returns scheme and host of a referrer, from which its host is read again, and its
// path where that is kept. Of what has no host that statistics could show nothing is left.
func (r *reducer) referrer(referrer []byte) []byte {
	var buf [256]byte
	host := referrerHost(referrer, buf[:])
	if len(host) == 0 {
		return nil
	}
	begin := len(r.buf)
	scheme, rest, _ := bytes.Cut(referrer, []byte("://"))
	if scheme[0]|0x20 == 'a' {
		r.buf = append(r.buf, "android-app://"...)
	} else {
		r.buf = append(r.buf, "https://"...)
	}
	r.buf = appendHost(r.buf, host)
	if r.detail == DetailReferrerPath {
		if end := bytes.IndexAny(rest, "?#"); end >= 0 {
			rest = rest[:end]
		}
		if slash := bytes.IndexByte(rest, '/'); slash >= 0 {
			r.buf = append(r.buf, rest[slash:]...)
		}
	}
	return r.buf[begin:]
}

// appendHost appends a host that referrerHost returned so that it returns it again: it leaves
// out one "www.", one dot at the end and one port, of which strangers send several.
func appendHost(b, host []byte) []byte {
	if bytes.HasPrefix(host, []byte("www.")) {
		b = append(b, "www."...)
	}
	b = append(b, host...)
	if bytes.HasSuffix(host, []byte(".")) {
		b = append(b, '.')
	}
	if bytes.IndexByte(host, ':') >= 0 && !bytes.HasSuffix(host, []byte("]")) {
		b = append(b, ':')
	}
	return b
}

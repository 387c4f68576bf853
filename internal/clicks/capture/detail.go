package capture

import (
	"fmt"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/headers"
	"curt/internal/clicks/useragent"
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

// botListBudget is what one drain may spend on user agents that are new, a
// quarter of what kill -9 may take. Some 80 of them are looked up in it, which real traffic
// has in a minute; of a flood of invented ones the others are judged by what they say
// themselves.
const botListBudget = 25 * time.Millisecond

// reducer leaves of a click what is kept. Owned by one goroutine.
type reducer struct {
	detail Detail
	agents *useragent.Parser
	buf    []byte // of the click at hand
}

func newReducer(d Detail) reducer { return reducer{detail: d, agents: useragent.NewParser()} }

// reduce makes c what is kept of it, valid until the next call, and returns what its user
// agent tells.
func (r *reducer) reduce(c *clicks.Raw) useragent.Result {
	who := r.agents.Parse(c.UserAgent)
	r.buf = r.buf[:0]
	if r.detail == DetailFull {
		c.UserAgent = r.kept(headers.AppendPlain(r.buf, c.UserAgent))
		c.Query = r.kept(headers.AppendPlainQuery(r.buf, c.Query))
		return who
	}
	c.UserAgent = nil
	if c.Outcome == clicks.Orphan { // anyone can invent codes
		c.Domain, c.Code, c.Referrer, c.Language, c.Query = nil, nil, nil, nil, nil
		return who
	}
	c.Referrer = r.kept(headers.AppendReferrer(r.buf, c.Referrer, r.detail == DetailReferrerPath))
	c.Language = r.kept(headers.AppendLanguage(r.buf, headers.PrimaryLanguage(c.Language)))
	fields, _ := headers.ParseUTM(c.Query)
	c.Query = r.kept(headers.AppendUTM(r.buf, &fields))
	return who
}

// kept returns what was appended to buf, which is grown.
func (r *reducer) kept(grown []byte) []byte {
	begin := len(r.buf)
	r.buf = grown
	return grown[begin:len(grown):len(grown)]
}

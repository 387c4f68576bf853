// Package judge decides about where links lead, and records the decision in the journal before
// the link is written. Read judge.go.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"curt/internal/abuse"
	"curt/internal/abuse/blocklist"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/weburl"
)

// Judge judges where links lead. It is safe for many goroutines.
type Judge struct {
	cfg     Config
	metrics *metrics
}

// Config is what [New] needs; linkservice.Config explains the fields.
type Config struct {
	Lists     *blocklist.Lists // nil = none
	Decide    func(context.Context, time.Time, *abuse.Facts) abuse.Decision
	Moderator Moderator // nil = there are no bans
	Journal   Journal   // nil = there is none
	Cases     Cases     // nil = a refused create opens none
	Country   func(netip.Addr) string
	Random    io.Reader
	Metrics   prometheus.Registerer
}

// New returns a Judge.
func New(cfg Config) *Judge {
	if cfg.Decide == nil {
		cfg.Decide = byLists(cfg.Lists)
	}
	if cfg.Moderator == nil {
		cfg.Moderator = absent{}
	}
	if cfg.Journal == nil {
		cfg.Journal = absent{}
	}
	if cfg.Country == nil {
		cfg.Country = func(netip.Addr) string { return "" }
	}
	return &Judge{cfg, newMetrics(cfg.Metrics)}
}

// metrics are what judging counts.
type metrics struct{ listed, harmful, banned, warned prometheus.Counter }

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(reg).NewCounter(prometheus.CounterOpts{Namespace: "curt", Name: name, Help: help})
	}
	return &metrics{
		listed:  counter("links_listed_total", "Links refused because their destination is on a blocklist."),
		harmful: counter("links_harmful_total", "Links refused because of their score."),
		banned:  counter("links_banned_total", "Links refused because of a ban."),
		warned:  counter("links_warned_total", "Links flagged with a warning on create or update."),
	}
}

// BeginWrite is called before links are judged that are then written, and done after the write.
func (c *Judge) BeginWrite() (done func()) { return c.cfg.Moderator.BeginWrite() }

// Apply gives a link the safety that was decided, and announces it.
func (c *Judge) Apply(ctx context.Context, now time.Time, k link.Key) error {
	_, err := c.cfg.Moderator.Apply(ctx, now, k)
	return err
}

// CountWarned counts a link that was created with a warning, or got one by a change.
func (c *Judge) CountWarned() { c.metrics.warned.Inc() }

// Judgement is what is known about where a link leads, destination and fallback, and
// what that comes to.
type Judgement struct {
	abuse.Decision

	Field string // the URL that it is about, by its name in the API: the graver of two
}

// URLs are the URLs of a link that are judged; "" = not this one.
type URLs struct{ Destination, Fallback string }

func URLsOf(l *link.Link) URLs { return URLs{l.Destination, l.Fallback} }

// Assess judges where a link leads, from memory alone and within microseconds. What is
// banned or would be blocked is refused, with a BannedError, a ListedError or a
// HarmfulError. It is asked behind the limit of creates, so that nobody can try many URLs
// against bans, lists and signals.
func (c *Judge) Assess(ctx context.Context, now time.Time, f abuse.Facts, to URLs) (Judgement, error) {
	return c.weigh(ctx, now, f, to, func(j *Judgement, f *abuse.Facts) error {
		if ban, barred := c.cfg.Moderator.CheckBan(f); barred {
			c.metrics.banned.Inc()
			return &shorten.BannedError{Field: j.Field, Kind: ban.Entity.Kind}
		}
		verdict := c.obey(j, f)
		if j.Safety >= link.Blocked {
			return c.refuse(j, f, verdict.Link)
		}
		return nil
	})
}

// obey has a moderator's decision about a destination hold, within the lists and the rules of the
// operator.
func (c *Judge) obey(j *Judgement, f *abuse.Facts) (verdict moderation.Entry) {
	verdict, decided := c.cfg.Moderator.Verdict(f.Workspace, f.URL.Href())
	if decided {
		j.Safety = max(verdict.Safety, j.Floor)
	}
	return verdict
}

// Reassess judges where a link leads that is there: as Assess, but for what is known of
// whoever asked for it, and it refuses nothing.
func (c *Judge) Reassess(ctx context.Context, now time.Time, l *link.Link) Judgement {
	f := abuse.Facts{Workspace: l.Workspace, Creator: l.CreatedBy, Change: true}
	worst, err := c.weigh(ctx, now, f, URLsOf(l), func(j *Judgement, f *abuse.Facts) error {
		if v, decided := c.cfg.Moderator.Verdict(f.Workspace, f.URL.Href()); decided && moderation.Allows(v.Safety) {
			c.obey(j, f) // a refusal concerns new links
		}
		return nil
	})
	if err != nil { // what is no URL is refused when it is followed
		return Judgement{Decision: abuse.Decision{Safety: link.Clean}}
	}
	return worst
}

// weigh judges one URL after the other, lets decide change or refuse each, and returns the graver
// judgement.
func (c *Judge) weigh(ctx context.Context, now time.Time, f abuse.Facts, to URLs, decide func(*Judgement, *abuse.Facts) error) (Judgement, error) {
	worst := Judgement{Decision: abuse.Decision{Safety: link.Clean}}
	for _, one := range []struct{ field, href string }{{"long_url", to.Destination}, {"fallback_url", to.Fallback}} {
		if one.href == "" {
			continue
		}
		var err error
		if f.URL, err = weburl.Parse(one.href); err != nil {
			return worst, fmt.Errorf("assess a link: %w: %w", link.ErrInvalid, err)
		}
		found := Judgement{c.cfg.Decide(ctx, now, &f), one.field}
		if err := decide(&found, &f); err != nil {
			return found, err
		}
		if worst.Field == "" || found.Safety > worst.Safety || found.Safety == worst.Safety && found.Score > worst.Score {
			worst = found
		}
		f.Fallback = true
	}
	return worst, nil
}

// refuse returns the error of a URL that no link may lead to. It says which list has the
// host, because its operator chose to; never which signals saw what. The case is that of the
// decision that refuses; zero = there is none, and the error can be referred to a moderator.
func (c *Judge) refuse(j *Judgement, f *abuse.Facts, of link.ID) error {
	if c.cfg.Lists != nil {
		if rule, listed := c.cfg.Lists.Match(f.URL); listed {
			c.metrics.listed.Inc()
			return &shorten.ListedError{Field: j.Field, Rule: rule}
		}
	}
	c.metrics.harmful.Inc()
	refused := &shorten.HarmfulError{Field: j.Field, Case: of}
	if j.Floor >= link.Blocked {
		refused.Case = link.ID{} // no moderator can allow it
	} else if of.IsZero() {
		evidence, err := evidenceOf(j.Findings)
		if err != nil {
			return err
		}
		refused.Blocked = &moderation.BlockedCreate{
			Workspace: f.Workspace, CreatedBy: f.Creator, Network: f.Network, URL: f.URL.Href(), Host: f.URL.Host(),
			Score: j.Score, Evidence: evidence, Count: 1,
		}
	}
	return refused
}

// Cases is what a refused create needs of the review queue.
type Cases interface {
	// Refer puts blocked creates of one caller before a moderator and returns the ids of their
	// cases; zero = it has none. It is quick, and no error: the create is refused anyway.
	Refer(ctx context.Context, now time.Time, all []moderation.BlockedCreate) []link.ID
}

// Refer opens the cases of creates that the score blocked, one for each destination, and names them in
// the errors. It is called outside BeginWrite, behind creates that succeed.
func (c *Judge) Refer(ctx context.Context, now time.Time, errs ...error) {
	if c.cfg.Cases == nil {
		return
	}
	var all []moderation.BlockedCreate
	of := map[string][]*shorten.HarmfulError{}
	for _, err := range errs {
		refused, ok := errors.AsType[*shorten.HarmfulError](err)
		if !ok || refused.Blocked == nil {
			continue
		}
		url := refused.Blocked.URL
		if of[url] = append(of[url], refused); len(of[url]) == 1 {
			all = append(all, *refused.Blocked)
		}
	}
	if len(all) == 0 {
		return
	}
	for i := range all {
		all[i].Count = len(of[all[i].URL])
	}
	for i, id := range c.cfg.Cases.Refer(ctx, now, all) {
		for _, refused := range of[all[i].URL] {
			refused.Case = id
		}
	}
}

// FactsOf is what is known about who asks.
func (c *Judge) FactsOf(who auth.Principal, workspace link.WorkspaceID) abuse.Facts {
	f := abuse.Facts{Workspace: workspace, Creator: who.KeyID, Network: ratelimit.ClientNetwork(who.Addr)}
	if who.Addr.IsValid() {
		f.Country = c.cfg.Country(who.Addr)
	}
	return f
}

// CheckCaller returns a BannedError for a caller who may create no links, wherever they lead.
func (c *Judge) CheckCaller(who auth.Principal) error {
	f := c.FactsOf(who, who.Workspace)
	if ban, barred := c.cfg.Moderator.CheckBan(&f); barred {
		return &shorten.BannedError{Kind: ban.Entity.Kind}
	}
	return nil
}

// byLists judges by blocklists alone: what services without Judge do.
func byLists(lists *blocklist.Lists) func(context.Context, time.Time, *abuse.Facts) abuse.Decision {
	return func(_ context.Context, _ time.Time, f *abuse.Facts) abuse.Decision {
		if lists != nil {
			if _, listed := lists.Match(f.URL); listed {
				return abuse.Decision{Safety: link.Blocked, Score: 100, Floor: link.Blocked}
			}
		}
		return abuse.Decision{Safety: link.Clean}
	}
}

// Moderator is what making links needs of a moderator.Moderator.
type Moderator interface {
	// BeginWrite is called before CheckBan by whoever then writes, and leave after the write.
	BeginWrite() (leave func())
	// CheckBan returns the ban that stands against making such a link.
	CheckBan(f *abuse.Facts) (ban moderation.Entry, barred bool)
	// Verdict returns the decision about a destination that holds for a workspace.
	Verdict(w link.WorkspaceID, url string) (verdict moderation.Entry, decided bool)
	// Apply gives a link the safety that the journal and the bans say, and announces it.
	Apply(ctx context.Context, now time.Time, k link.Key) (link.Link, error)
}

// Journal is what making links needs of a moderation.Journal.
type Journal interface {
	Append(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error)
	EffectiveDecision(ctx context.Context, id link.ID) (moderation.Entry, error)
}

// absent is the Moderator and the Journal of services that were given none.
type absent struct{}

func (absent) BeginWrite() (leave func()) { return func() {} }

func (absent) CheckBan(*abuse.Facts) (ban moderation.Entry, barred bool) { return ban, false }

func (absent) Verdict(link.WorkspaceID, string) (verdict moderation.Entry, decided bool) {
	return verdict, false
}

func (absent) Apply(context.Context, time.Time, link.Key) (link.Link, error) {
	return link.Link{}, errAbsent
}

func (absent) Append(context.Context, ...moderation.Entry) ([]moderation.Entry, error) {
	return nil, errAbsent
}

func (absent) EffectiveDecision(context.Context, link.ID) (moderation.Entry, error) {
	return moderation.Entry{}, moderation.ErrNotFound
}

var errAbsent = errors.New("no moderator")

// Proposal is a link on its way into the store, with what was found about it.
type Proposal struct {
	link.Link

	Judged Judgement
}

// Unclean reports whether there is a decision to write down.
func (p *Proposal) Unclean() bool { return p.Judged.Safety > link.Clean }

// RecordNew writes the decisions about new links into the journal, in one durable write,
// before the links are stored under the keys that they have. Of a link that was entered
// before, by a try that did not live to store it, the decision stands as it was: one
// link has one, and nothing is written twice.
func (c *Judge) RecordNew(ctx context.Context, now time.Time, proposals ...*Proposal) error {
	var wanting []*Proposal
	for _, p := range proposals {
		if !p.Unclean() {
			continue
		}
		stands, err := c.EffectiveDecision(ctx, &p.Link)
		switch {
		case err != nil:
			return err
		case stands.Entity == moderation.OfLink(p.Key):
			p.Safety = stands.Safety
			continue
		}
		wanting = append(wanting, p)
	}
	if len(wanting) == 0 {
		return nil
	}
	return c.Record(ctx, now, wanting...)
}

// EffectiveDecision returns what was decided about a link, the zero Entry where nothing was.
func (c *Judge) EffectiveDecision(ctx context.Context, l *link.Link) (moderation.Entry, error) {
	stands, err := c.cfg.Journal.EffectiveDecision(ctx, l.ID)
	switch {
	case errors.Is(err, moderation.ErrNotFound):
		return moderation.Entry{}, nil
	case err != nil:
		return stands, fmt.Errorf("%w: read the journal about %s: %w", link.ErrUnavailable, l.Key, err)
	}
	return stands, nil
}

// Record writes decisions into the journal.
func (c *Judge) Record(ctx context.Context, now time.Time, proposals ...*Proposal) error {
	entries := make([]moderation.Entry, len(proposals))
	for i, p := range proposals {
		var err error
		if entries[i], err = c.entryOf(now, p); err != nil {
			return err
		}
	}
	_, err := c.cfg.Journal.Append(ctx, entries...)
	switch {
	case errors.Is(err, moderation.ErrInvalid): // a fault of ours: no retry helps
		return fmt.Errorf("write decisions: %w", err)
	case err != nil: // perhaps written, and then about links that never were
		return fmt.Errorf("%w: write decisions: %w", link.ErrUnavailable, err)
	}
	return nil
}

// entryOf is the decision about a link, as the journal keeps it: the reason names the
// URL that is meant, the evidence is what was found.
func (c *Judge) entryOf(now time.Time, p *Proposal) (moderation.Entry, error) {
	e := moderation.Entry{
		At: now.UTC().Truncate(time.Millisecond), Entity: moderation.OfLink(p.Key), Link: p.ID, Action: moderation.ActionDecide,
		Safety: p.Judged.Safety, Score: p.Judged.Score, Actor: moderation.ActorPolicy,
	}
	evidence, err := evidenceOf(p.Judged.Findings)
	if err != nil {
		return e, err
	}
	for _, text := range []struct {
		to   *moderation.Text
		body string
	}{{&e.Reason, p.Judged.Field}, {&e.Evidence, evidence}} {
		var salt [16]byte
		if _, err := io.ReadFull(c.cfg.Random, salt[:]); err != nil {
			return e, fmt.Errorf("salt a decision: %w", err)
		}
		*text.to = moderation.Commit(text.body, salt)
	}
	return e, nil
}

// evidenceOf writes as many findings as an entry holds, the weightiest first.
func evidenceOf(found []abuse.Finding) (string, error) {
	for n := len(found); ; n /= 2 {
		text, err := json.Marshal(found[:n])
		switch {
		case err != nil:
			return "", fmt.Errorf("write findings: %w", err)
		case n == 0:
			return "[]", nil
		case len(text) <= moderation.MaxEvidence:
			return string(text), nil
		}
	}
}

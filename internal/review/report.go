package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
	"curt/internal/ratelimit"
)

// Complaint is what somebody reports.
type Complaint struct {
	Link     link.Key
	Category string
	Text     string // what is wrong, in their words; may be empty
	Contact  string // where they can be asked; may be empty
}

// Reports takes reports of links from anybody.
type Reports struct {
	cases     moderation.Cases
	journal   Journal
	moderator Moderator
	links     Links

	gate         gate
	opener       opener
	networks     *networks
	quarantineAt int // networks that have to report a link on one day; 0 = reports alone stop nothing
	metrics      *metrics
	kick         func() // the journal has grown
}

// MayReport refuses a caller whose network is banned, or has used up its limit, and charges
// nothing: it is called before a report is read.
func (r *Reports) MayReport(ctx context.Context, now time.Time, who auth.Principal) error {
	return r.gate.check(ctx, now, who, ratelimit.Peek)
}

// Report takes a report from anybody. It says nothing about the link: nil is the answer
// for one that is there, for one that is not, and for one that is stopped already; only
// the first is stored. Errors: InvalidError, LimitedError, those of the stores.
func (r *Reports) Report(ctx context.Context, now time.Time, who auth.Principal, c Complaint) error {
	category, ok := moderation.ParseCategory(c.Category)
	if !ok {
		return invalid("category", "expected one of %v", moderation.Categories())
	}
	if err := errors.Join(checkText("text", c.Text, moderation.MaxReportText, true), checkText("contact", c.Contact, moderation.MaxContact, false)); err != nil {
		return err
	}
	if err := r.gate.admit(ctx, now, who); err != nil {
		return err
	}
	now = now.UTC().Truncate(time.Millisecond)
	l, err := r.links.Get(ctx, c.Link)
	switch {
	case errors.Is(err, link.ErrNotFound):
		r.metrics.ignored.Inc()
		return nil
	case err != nil:
		return fmt.Errorf("get %s: %w", c.Link, err)
	case l.Status == link.Deleted || l.Safety >= link.Blocked:
		r.metrics.ignored.Inc()
		return nil
	}
	o, err := r.opener.link(now, &l, moderation.FromReport)
	if err != nil {
		return err
	}
	found, networks, err := r.cases.Report(ctx, moderation.Report{
		Opening: o, Category: category, Text: c.Text, Contact: c.Contact, Network: r.networks.digest(ctx, now, "report", who.Addr),
	})
	if err != nil {
		return err
	}
	r.metrics.reports.WithLabelValues(category.String()).Inc()
	return r.quarantine(ctx, now, &l, &found, networks)
}

// quarantine stops a link that enough networks have reported today, unless a moderator
// has decided about it: whoever has many networks at hand must not overrule a person.
func (r *Reports) quarantine(ctx context.Context, now time.Time, l *link.Link, c *moderation.Case, networks int) error {
	if r.quarantineAt == 0 || networks < r.quarantineAt || l.Safety >= link.Quarantined {
		return nil
	}
	standing, err := r.journal.EffectiveDecision(ctx, l.ID)
	switch {
	case errors.Is(err, moderation.ErrNotFound):
	case err != nil:
		return fmt.Errorf("read the decision of %s: %w", l.Key, err)
	case standing.Actor != moderation.ActorPolicy:
		return nil
	}
	evidence, err := json.Marshal(struct {
		Reports  int `json:"reports"`
		Networks int `json:"networks"`
	}{c.Reports.Count, networks})
	if err != nil {
		return fmt.Errorf("write the evidence: %w", err)
	}
	outcomes, err := r.moderator.Decide(ctx, now, moderation.ActorPolicy, []moderator.Order{
		{Key: l.Key, Safety: link.Quarantined, Reason: "reported from many networks", Evidence: string(evidence)},
	})
	if err == nil {
		err = outcomes[0].Err
	}
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", l.Key, err)
	}
	r.metrics.quarantined.Inc()
	r.kick()
	return nil
}

// checkText refuses what is too long, no text, or would rule a terminal. Words may have
// lines.
func checkText(field, text string, most int, lines bool) error {
	switch {
	case len(text) > most:
		return invalid(field, "must not exceed %d bytes", most)
	case !utf8.ValidString(text):
		return invalid(field, "must be UTF-8")
	}
	for _, r := range text {
		if r < ' ' && (!lines || r != '\n' && r != '\r' && r != '\t') || 0x7f <= r && r < 0xa0 {
			return invalid(field, "must not contain control characters")
		}
	}
	return nil
}

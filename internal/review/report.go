package review

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
	"unicode/utf8"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
)

// Complaint is what somebody reports.
type Complaint struct {
	Link     link.Key
	Category string
	Text     string // what is wrong, in their words; may be empty
	Contact  string // where they can be asked; may be empty
}

// Report takes a report from anybody. It says nothing about the link: nil is the answer
// for one that is there, for one that is not, and for one that is stopped already; only
// the first is stored. Errors: InvalidError, LimitedError, those of the stores.
func (d *Desk) Report(ctx context.Context, now time.Time, who auth.Principal, c Complaint) error {
	category, ok := moderation.ParseCategory(c.Category)
	if !ok {
		return invalid("category", "want one of %v", moderation.Categories())
	}
	if err := errors.Join(checkText("text", c.Text, moderation.MaxReportText, true), checkText("contact", c.Contact, moderation.MaxContact, false)); err != nil {
		return err
	}
	if err := d.admit(ctx, now, who, "report", d.config.ReportLimit); err != nil {
		return err
	}
	now = now.UTC().Truncate(time.Millisecond)
	l, err := d.config.Links.Get(ctx, c.Link)
	switch {
	case errors.Is(err, link.ErrNotFound):
		d.metrics.ignored.Inc()
		return nil
	case err != nil:
		return fmt.Errorf("get %s: %w", c.Link, err)
	case l.Status == link.Deleted || l.Safety >= link.Blocked:
		d.metrics.ignored.Inc()
		return nil
	}
	o, err := d.opening(now, &l, moderation.FromReport)
	if err != nil {
		return err
	}
	found, networks, err := d.config.Cases.Report(ctx, moderation.Report{
		Opening: o, Category: category, Text: c.Text, Contact: c.Contact, Network: d.network(ctx, now, who.Addr),
	})
	if err != nil {
		return err
	}
	d.metrics.reports.WithLabelValues(category.String()).Inc()
	return d.quarantine(ctx, now, &l, &found, networks)
}

// quarantine stops a link that enough networks have reported today, unless a moderator
// has decided about it: whoever has many networks at hand must not overrule a person.
func (d *Desk) quarantine(ctx context.Context, now time.Time, l *link.Link, c *moderation.Case, networks int) error {
	if d.config.Quarantine == 0 || networks < d.config.Quarantine || l.Safety >= link.Quarantined {
		return nil
	}
	standing, err := d.config.Journal.Standing(ctx, l.ID)
	switch {
	case errors.Is(err, moderation.ErrNotFound):
	case err != nil:
		return fmt.Errorf("read what stands of %s: %w", l.Key, err)
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
	outcomes, err := d.config.Moderator.Decide(ctx, now, moderation.ActorPolicy, []moderation.Order{
		{Key: l.Key, Safety: link.Quarantined, Reason: "reported from many networks", Evidence: string(evidence)},
	})
	if err == nil {
		err = outcomes[0].Err
	}
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", l.Key, err)
	}
	d.metrics.quarantined.Inc()
	d.kick()
	return nil
}

// network is the digest that stands for a network for a day: a /24 or a /48, as one
// person has several addresses of it. It has nothing in common
// with the tags of that day's visitors. 0 when there is no key: the report counts, its
// network does not.
func (d *Desk) network(ctx context.Context, now time.Time, addr netip.Addr) uint64 {
	if !addr.IsValid() {
		return 0
	}
	key, err := d.config.DayKeys.DayKey(ctx, now)
	if err != nil {
		if again, due := d.keyless.Met(now); due {
			d.config.Log.WarnContext(ctx, "the network of a report is not told apart: no day key", slog.Any("err", err), again)
		}
		return 0
	}
	if sum, due := d.keyless.Over(now); due {
		d.config.Log.InfoContext(ctx, "networks of reports are told apart again", sum)
	}
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("report\x00" + ratelimit.ClientSurroundings(addr).String()))
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}

// checkText refuses what is too long, no text, or would rule a terminal. Words may have
// lines.
func checkText(field, text string, most int, lines bool) error {
	switch {
	case len(text) > most:
		return invalid(field, "may have at most %d bytes", most)
	case !utf8.ValidString(text):
		return invalid(field, "is not UTF-8")
	}
	for _, r := range text {
		if r < ' ' && (!lines || r != '\n' && r != '\r' && r != '\t') || 0x7f <= r && r < 0xa0 {
			return invalid(field, "may hold no control characters")
		}
	}
	return nil
}

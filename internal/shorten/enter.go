package shorten

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Moderator is what making links needs of a moderation.Moderator.
type Moderator interface {
	// Enter is called before Bars by whoever then writes, and leave after the write.
	Enter() (leave func())
	// Bars returns the ban that stands against making such a link.
	Bars(f *abuse.Facts) (ban moderation.Entry, barred bool)
	// Settle gives a link the safety that the journal and the bans say, and announces it.
	Settle(ctx context.Context, now time.Time, k link.Key) (link.Link, error)
}

// Journal is what making links needs of a moderation.Journal.
type Journal interface {
	Append(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error)
	Standing(ctx context.Context, id link.ID) (moderation.Entry, error)
}

// nobody is the Moderator and the Journal of services that were given none.
type nobody struct{}

func (nobody) Enter() (leave func()) { return func() {} }

func (nobody) Bars(*abuse.Facts) (ban moderation.Entry, barred bool) { return ban, false }

func (nobody) Settle(context.Context, time.Time, link.Key) (link.Link, error) {
	return link.Link{}, errNobody
}

func (nobody) Append(context.Context, ...moderation.Entry) ([]moderation.Entry, error) {
	return nil, errNobody
}

func (nobody) Standing(context.Context, link.ID) (moderation.Entry, error) {
	return moderation.Entry{}, moderation.ErrNotFound
}

var errNobody = errors.New("there is no moderator")

// proposal is a link on its way into the store, with what was found about it.
type proposal struct {
	link.Link

	judged judgement
}

// unclean reports whether there is a decision to write down.
func (p *proposal) unclean() bool { return p.judged.Safety > link.Clean }

// enter writes the decisions about new links into the journal, in one durable write,
// before the links are stored under the keys that they have. Of a link that was entered
// before, by a try that did not live to store it, the decision stands as it was: one
// link has one, and nothing is written twice.
func (c *court) enter(ctx context.Context, now time.Time, proposals ...*proposal) error {
	var wanting []*proposal
	for _, p := range proposals {
		if !p.unclean() {
			continue
		}
		stands, err := c.decided(ctx, &p.Link)
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
	return c.writeDown(ctx, now, wanting...)
}

// writeDown writes decisions into the journal.
func (c *court) writeDown(ctx context.Context, now time.Time, proposals ...*proposal) error {
	entries := make([]moderation.Entry, len(proposals))
	for i, p := range proposals {
		var err error
		if entries[i], err = c.entryOf(now, p); err != nil {
			return err
		}
	}
	_, err := c.journal.Append(ctx, entries...)
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
func (c *court) entryOf(now time.Time, p *proposal) (moderation.Entry, error) {
	e := moderation.Entry{
		At: now.UTC().Truncate(time.Millisecond), Entity: moderation.OfLink(p.Key), Link: p.ID, Action: moderation.ActionDecide,
		Safety: p.judged.Safety, Score: p.judged.Score, Actor: moderation.ActorPolicy,
	}
	evidence, err := evidenceOf(p.judged.Findings)
	if err != nil {
		return e, err
	}
	for _, text := range []struct {
		to   *moderation.Text
		body string
	}{{&e.Reason, p.judged.field}, {&e.Evidence, evidence}} {
		var salt [16]byte
		if _, err := io.ReadFull(c.random, salt[:]); err != nil {
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

package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
	"curt/internal/weburl"
)

// history is how many entries of the journal a file shows: a link that was decided about
// more often is looked up there.
const history = 50

// Row is a case in a list, with its link as it is now.
type Row struct {
	Case moderation.Case
	Link *link.Link // nil = deleted
}

// File is all that a moderator needs to decide about a link.
type File struct {
	Row

	Notes   []moderation.Note
	Appeal  *Appealed          // the newest; nil = none
	History []moderation.Entry // the newest first
}

// Ruling is what a moderator decides about a link.
type Ruling struct {
	Key    link.Key
	Safety link.Safety
	Reason string // for the journal, at most moderation.MaxReason bytes; of an answer, for the owner
}

// Ruled is what became of a Ruling. With an error and a Sequence in Entry the decision
// stands, and takes effect as soon as the link store can be written again.
type Ruled struct {
	Entry  moderation.Entry
	Link   link.Link        // as it is now
	Ban    moderation.Entry // that holds the link to more than was decided; zero = none does
	Closed *moderation.Case // nil = none was open
	Err    error
}

// Queue shows moderators the links under review, and takes what they decide.
type Queue struct {
	cases     moderation.Cases
	appeals   moderation.Appeals
	journal   Journal
	moderator Moderator
	links     Links
	closer    closer
}

// List returns a page of the queue.
func (q *Queue) List(ctx context.Context, who auth.Principal, f moderation.CaseFilter, p moderation.CasePage) ([]Row, moderation.CasePosition, error) {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return nil, moderation.CasePosition{}, err
	}
	cases, next, err := q.cases.List(ctx, f, p)
	if err != nil {
		return nil, next, err
	}
	rows := make([]Row, len(cases))
	for i := range cases {
		rows[i].Case = cases[i]
		if rows[i].Link, err = linkOf(ctx, q.links, cases[i].Link); err != nil {
			return nil, next, err
		}
	}
	return rows, next, nil
}

// Show returns the open case of a link, or the last one; moderation.ErrNoCase when it
// never was under review.
func (q *Queue) Show(ctx context.Context, who auth.Principal, k link.Key) (File, error) {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return File{}, err
	}
	l, err := q.links.Get(ctx, k)
	if err != nil {
		return File{}, fmt.Errorf("get %s: %w", k, err)
	}
	var f File
	if f.Case, err = q.cases.Case(ctx, l.ID); err != nil {
		return File{}, err
	}
	if l.Status != link.Deleted {
		f.Link = &l
	}
	if f.Notes, err = q.cases.Notes(ctx, f.Case.ID); err != nil {
		return File{}, err
	}
	switch a, err := q.appeals.Of(ctx, l.ID); {
	case err == nil:
		seen := appealed(q.moderator, a, f.Link)
		f.Appeal = &seen
	case !errors.Is(err, moderation.ErrNoAppeal):
		return File{}, err
	}
	entries, err := q.journal.Find(ctx, moderation.Filter{Entity: moderation.OfLink(k)}, 0, history)
	if err != nil {
		return File{}, fmt.Errorf("read the journal of %s: %w", k, err)
	}
	for _, e := range entries {
		if e.Link == l.ID || e.Link.IsZero() { // others were about to have the key
			f.History = append(f.History, e)
		}
	}
	return f, nil
}

// Decide decides about links, in one durable write, and closes their cases: an open
// appeal is answered by that, without words. One that fails does not save the others; the
// error is for all of them.
func (q *Queue) Decide(ctx context.Context, now time.Time, who auth.Principal, rulings []Ruling) ([]Ruled, error) {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return nil, err
	}
	if len(rulings) == 0 || len(rulings) > moderator.MaxOrders {
		return nil, invalid("decisions", "expected 1 to %d", moderator.MaxOrders)
	}
	results, orders, of := make([]Ruled, len(rulings)), make([]moderator.Order, 0, len(rulings)), make([]int, 0, len(rulings))
	for i := range rulings {
		r := &rulings[i]
		if results[i].Err = r.check("reason"); results[i].Err == nil {
			orders, of = append(orders, moderator.Order{Key: r.Key, Safety: r.Safety, Reason: r.Reason}), append(of, i)
		}
	}
	if len(orders) == 0 {
		return results, nil
	}
	outcomes, err := q.carryOut(ctx, now, who.KeyID, orders)
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		results[of[i]] = q.conclude(ctx, &outcomes[i])
	}
	return results, nil
}

// carryOut has the moderator decide about all at once, and one by one where it refuses
// one of them, which must not spoil the others.
func (q *Queue) carryOut(ctx context.Context, now time.Time, actor string, orders []moderator.Order) ([]moderator.Outcome, error) {
	outcomes, err := q.moderator.Decide(ctx, now, actor, orders)
	if _, wrong := errors.AsType[*moderation.InvalidError](err); !wrong {
		return outcomes, err
	}
	outcomes = make([]moderator.Outcome, len(orders))
	for i := range orders {
		one, err := q.moderator.Decide(ctx, now, actor, orders[i:i+1])
		if _, wrong := errors.AsType[*moderation.InvalidError](err); wrong {
			outcomes[i].Err = err
			continue
		}
		if err != nil {
			return nil, err
		}
		outcomes[i] = one[0]
	}
	return outcomes, nil
}

// Answer answers the open appeal of a link, once: moderation.ErrNoAppeal when there is
// none, moderation.ErrAnswered when it has its answer. The reason is what the owner reads.
func (q *Queue) Answer(ctx context.Context, now time.Time, who auth.Principal, r Ruling) (Ruled, error) {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return Ruled{}, err
	}
	if err := r.check("answer"); err != nil {
		return Ruled{}, err
	}
	l, err := q.links.Get(ctx, r.Key)
	if err != nil {
		return Ruled{}, fmt.Errorf("get %s: %w", r.Key, err)
	}
	a, err := q.appeals.Of(ctx, l.ID)
	switch {
	case err != nil:
		return Ruled{}, err
	case !a.IsOpen():
		return Ruled{}, moderation.ErrAnswered
	}
	outcomes, err := q.moderator.Decide(ctx, now, who.KeyID, []moderator.Order{
		{Key: r.Key, Safety: r.Safety, Action: moderation.ActionAnswer, Reason: r.Reason},
	})
	if err != nil {
		return Ruled{}, err
	}
	done := q.conclude(ctx, &outcomes[0])
	return done, done.Err
}

// conclude closes the case of what was decided at once, so that whoever decided does not
// find it in the queue again. Run finds that done, or does it.
func (q *Queue) conclude(ctx context.Context, o *moderator.Outcome) Ruled {
	done := Ruled{Entry: o.Entry, Link: o.Link, Err: o.Err}
	k, ok := o.Entry.Entity.Key()
	if !ok { // nothing was decided
		return done
	}
	if done.Err == nil {
		done.Ban = held(q.moderator, &done.Link, done.Entry.Safety)
	}
	done.Closed = q.closer.close(ctx, closing(&o.Entry, moderation.Ref{Key: k, ID: o.Entry.Link}))
	return done
}

// held returns the ban that holds a link to more than was decided about it; the zero
// Entry when none does.
func held(m Moderator, l *link.Link, decided link.Safety) moderation.Entry {
	if ban, banned := m.BanOf(l); banned && ban.Safety > decided {
		return ban
	}
	return moderation.Entry{}
}

// check refuses a ruling that nobody can carry out; field is what its reason is called.
func (r *Ruling) check(field string) error {
	switch {
	case r.Safety < link.Clean || r.Safety > link.Legal:
		return invalid("safety", "expected clean, warn, quarantined, blocked or legal")
	case strings.TrimSpace(r.Reason) == "":
		return invalid(field, "is required")
	}
	return checkText(field, r.Reason, moderation.MaxReason, true)
}

// Erase erases what strangers wrote about a link, at once, and returns how many texts.
func (q *Queue) Erase(ctx context.Context, who auth.Principal, k link.Key) (int, error) {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return 0, err
	}
	l, err := q.links.Get(ctx, k)
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", k, err)
	}
	return q.cases.Erase(ctx, l.ID)
}

// linkOf returns a link as it is now; nil = deleted, or never made.
func linkOf(ctx context.Context, links Links, r moderation.Ref) (*link.Link, error) {
	if r.IsDestination() {
		return nil, nil //nolint:nilnil // absence is no failure here
	}
	l, err := links.Get(ctx, r.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return nil, nil //nolint:nilnil // absence is no failure here
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", r.Key, err)
	case l.ID != r.ID || l.Status == link.Deleted:
		return nil, nil //nolint:nilnil // as above
	}
	return &l, nil
}

// closer closes cases at once that a moderator has decided.
type closer struct {
	cases   moderation.Cases
	metrics *metrics
	kick    func()
}

// close returns the case; nil = none was open, or the follower has to close it.
func (c closer) close(ctx context.Context, by moderation.Closing) *moderation.Case {
	closed, err := c.cases.Close(ctx, by)
	if err != nil {
		if !errors.Is(err, moderation.ErrNoCase) {
			c.kick()
		}
		return nil
	}
	c.metrics.decided(&closed)
	return &closed
}

// factsOf is what the queue is filtered by.
func factsOf(l *link.Link) moderation.Facts {
	_, host, _ := weburl.Split(l.Destination)
	return moderation.Facts{Workspace: l.Workspace, Host: host}
}

// closing is what an entry of the journal does to a case.
func closing(e *moderation.Entry, r moderation.Ref) moderation.Closing {
	c := moderation.Closing{Link: r, Sequence: e.Sequence, At: e.At, By: e.Actor, Safety: e.Safety}
	if e.Action == moderation.ActionAnswer {
		c.Answer = e.Reason.Body
	}
	if w, digest, ok := e.Entity.Destination(); ok && w == "" {
		c.Everyone, c.Digest = true, digest
	}
	return c
}

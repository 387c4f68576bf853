package moderator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

const (
	// MaxOrders is how many links one Decide takes.
	MaxOrders = 100
	// atOnce is how many links are changed side by side, so that their writes share a
	// commit.
	atOnce = 16
)

// Order asks for one decision.
type Order struct {
	Key      link.Key
	Safety   link.Safety
	Action   moderation.Action // ActionDecide or ActionAnswer; "" = ActionDecide
	Reason   string            // in the moderator's words; needed
	Evidence string
}

// Outcome is what became of one Order.
type Outcome struct {
	Entry moderation.Entry // of the journal
	Link  link.Link        // as it stands now
	// Err is link.ErrNotFound when there is no such link, also for one that was deleted: then
	// nothing was decided. With another error and a Sequence in Entry the decision stands,
	// and takes effect as soon as the link store can be written again.
	Err error
}

// Decide decides about links: the decisions are on the journal, in one durable write, then
// in the links, then announced. There is an outcome for each order, in order. An error for
// all of them is an InvalidError, and nothing was decided; or one of the journal.
func (m *Moderator) Decide(ctx context.Context, now time.Time, actor string, orders []Order) ([]Outcome, error) {
	if len(orders) == 0 || len(orders) > MaxOrders {
		return nil, moderation.Invalid("decisions", "expected 1 to %d", MaxOrders)
	}
	for i := range orders {
		if err := orders[i].check(); err != nil {
			return nil, err
		}
	}
	outcomes := make([]Outcome, len(orders))
	entries, of := make([]moderation.Entry, 0, len(orders)), make([]int, 0, len(orders))
	for i := range orders {
		e, err := m.draft(ctx, now, actor, &orders[i])
		if err != nil {
			outcomes[i].Err = err
			continue
		}
		entries, of = append(entries, e), append(of, i)
	}
	stored, err := m.cfg.Journal.Append(ctx, entries...)
	if err != nil {
		return nil, fmt.Errorf("decide: %w", err)
	}
	began := m.cfg.Now()
	// From here on it is decided: whoever went home is answered by the effect.
	ctx = context.WithoutCancel(ctx)
	inParallel(len(stored), func(i int) {
		o := &outcomes[of[i]]
		o.Entry = stored[i]
		k, _ := stored[i].Entity.Key()
		o.Link, o.Err = m.Apply(ctx, now, k)
		m.metrics.effect(m.cfg.Now().Sub(began))
	})
	return outcomes, nil
}

// DecideDestination decides about a destination, whose case is id: from when it returns here, and
// where others follow the journal, creates are allowed or refused by it. Errors are InvalidError, and
// those of the journal.
func (m *Moderator) DecideDestination(ctx context.Context, now time.Time, actor string, about moderation.Entity, id link.ID, o Order) (moderation.Entry, error) {
	if err := o.check(); err != nil {
		return moderation.Entry{}, err
	}
	e := moderation.Entry{At: instant(now), Entity: about, Link: id, Action: cmp.Or(o.Action, moderation.ActionDecide), Safety: o.Safety, Actor: actor}
	if err := fill(m.cfg.Random, &e, o.Reason, o.Evidence); err != nil {
		return moderation.Entry{}, err
	}
	stored, err := m.cfg.Journal.Append(ctx, e)
	if err != nil {
		return moderation.Entry{}, fmt.Errorf("decide about a destination: %w", err)
	}
	m.verdicts.Put(stored[0])
	return stored[0], nil
}

// EraseDestination records that the case of a destination, whose id is id, is erased. Errors are those of
// DecideDestination.
func (m *Moderator) EraseDestination(ctx context.Context, now time.Time, actor string, about moderation.Entity, id link.ID, reason string) error {
	if err := moderation.CheckReason(reason); err != nil {
		return err
	}
	e := moderation.Entry{At: instant(now), Entity: about, Link: id, Action: moderation.ActionErase, Safety: link.Clean, Actor: actor}
	if err := fill(m.cfg.Random, &e, moderation.CaseErasureReason(reason), ""); err != nil {
		return err
	}
	if e.Validate() != nil {
		return moderation.Invalid("reason", "is too long")
	}
	if _, err := m.cfg.Journal.Append(ctx, e); err != nil {
		return fmt.Errorf("erase a case: %w", err)
	}
	return nil
}

// check refuses an order that nobody can carry out.
func (o *Order) check() error {
	switch {
	case o.Safety < link.Clean || o.Safety > link.Legal:
		return moderation.Invalid("safety", "expected clean, warn, quarantined, blocked or legal")
	case o.Action != "" && o.Action != moderation.ActionDecide && o.Action != moderation.ActionAnswer:
		return moderation.Invalid("action", "expected decide or answer")
	case len(o.Evidence) > moderation.MaxEvidence:
		return moderation.Invalid("evidence", "expected at most %d bytes", moderation.MaxEvidence)
	}
	return moderation.CheckReason(o.Reason)
}

// draft returns the entry of an order about a link that is there.
func (m *Moderator) draft(ctx context.Context, now time.Time, actor string, o *Order) (moderation.Entry, error) {
	l, err := m.cfg.Links.Get(ctx, o.Key)
	err = m.cfg.Pending(ctx, o.Key, err)
	if err == nil && l.Status == link.Deleted {
		err = link.ErrNotFound
	}
	if err != nil {
		return moderation.Entry{}, fmt.Errorf("decide on %s: %w", o.Key, err)
	}
	e := moderation.Entry{
		At: instant(now), Entity: moderation.OfLink(o.Key), Link: l.ID, Action: cmp.Or(o.Action, moderation.ActionDecide), Safety: o.Safety, Actor: actor,
	}
	return e, fill(m.cfg.Random, &e, o.Reason, o.Evidence)
}

// fill puts texts into an entry.
func fill(random io.Reader, e *moderation.Entry, reason, evidence string) (err error) {
	if e.Reason, err = moderation.NewText(reason, random); err != nil {
		return err
	}
	e.Evidence, err = moderation.NewText(evidence, random)
	return err
}

// instant returns a time as entries have it.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// inParallel calls f with 0 to n-1, some at a time, and returns when all have returned.
func inParallel(n int, f func(i int)) {
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(n, atOnce) {
		workers.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// Erase takes the texts of an entry away, for good, and returns the entry that says so.
// Errors: InvalidError, ErrNotFound and those of the journal.
func (m *Moderator) Erase(ctx context.Context, now time.Time, actor string, sequence uint64, reason string) (moderation.Entry, error) {
	if err := moderation.CheckReason(reason); err != nil {
		return moderation.Entry{}, err
	}
	found, err := m.cfg.Journal.Read(ctx, sequence-1, 1) // 0 wraps around, to where nothing is
	if err != nil {
		return moderation.Entry{}, fmt.Errorf("find entry %d: %w", sequence, err)
	}
	if len(found) == 0 || found[0].Sequence != sequence {
		return moderation.Entry{}, fmt.Errorf("erase entry %d: %w", sequence, moderation.ErrNotFound)
	}
	by := moderation.Entry{At: instant(now), Entity: found[0].Entity, Link: found[0].Link, Action: moderation.ActionErase, Safety: link.Clean, Actor: actor}
	if err := fill(m.cfg.Random, &by, moderation.ErasureReason(sequence, reason), ""); err != nil {
		return moderation.Entry{}, err
	}
	// The number stands in front of the reason, which may have to be shorter for it.
	if by.Validate() != nil {
		return moderation.Entry{}, moderation.Invalid("reason", "is too long")
	}
	return m.bans.erase(ctx, found[0].Entity, sequence, by)
}

// dropNotFound forgives that a link is not there: the journal may know one that never
// came to be, or is gone.
func dropNotFound(err error) error {
	if errors.Is(err, link.ErrNotFound) {
		return nil
	}
	return err
}

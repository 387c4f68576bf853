package moderation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"curt/internal/link"
)

const (
	// MaxOrders is how many links one Decide takes.
	MaxOrders = 100
	// atOnce is how many links are settled side by side, so that their writes share a
	// commit.
	atOnce = 16
)

// Order asks for one decision.
type Order struct {
	Key      link.Key
	Safety   link.Safety
	Action   Action // ActionDecide or ActionAnswer; "" = ActionDecide
	Reason   string // in the moderator's words; needed
	Evidence string
}

// Outcome is what became of one Order.
type Outcome struct {
	Entry Entry     // of the journal
	Link  link.Link // as it stands now
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
		return nil, invalid("decisions", "want 1 to %d", MaxOrders)
	}
	for i := range orders {
		if err := orders[i].check(); err != nil {
			return nil, err
		}
	}
	outcomes := make([]Outcome, len(orders))
	entries, of := make([]Entry, 0, len(orders)), make([]int, 0, len(orders))
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
		o.Link, o.Err = m.Settle(ctx, now, k)
		m.metrics.effect(m.cfg.Now().Sub(began))
	})
	return outcomes, nil
}

// check refuses an order that nobody can carry out.
func (o *Order) check() error {
	switch {
	case o.Safety < link.Clean || o.Safety > link.Legal:
		return invalid("safety", "want clean, warn, quarantined, blocked or legal")
	case o.Action != "" && o.Action != ActionDecide && o.Action != ActionAnswer:
		return invalid("action", "want decide or answer")
	case len(o.Evidence) > MaxEvidence:
		return invalid("evidence", "want at most %d bytes", MaxEvidence)
	}
	return checkReason(o.Reason)
}

// checkReason wants words: a decision that nobody can explain later is none.
func checkReason(reason string) error {
	switch odd := strings.ContainsFunc(reason, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); {
	case strings.TrimSpace(reason) == "":
		return invalid("reason", "is required")
	case len(reason) > MaxReason:
		return invalid("reason", "want at most %d bytes", MaxReason)
	case odd || strings.ContainsRune(reason, unicode.ReplacementChar):
		return invalid("reason", "want text without control characters")
	}
	return nil
}

// draft returns the entry of an order about a link that is there.
func (m *Moderator) draft(ctx context.Context, now time.Time, actor string, o *Order) (Entry, error) {
	l, err := m.cfg.Links.Get(ctx, o.Key)
	if err == nil && l.Status == link.Deleted {
		err = link.ErrNotFound
	}
	if err != nil {
		return Entry{}, fmt.Errorf("decide about %s: %w", o.Key, err)
	}
	e := Entry{
		At: instant(now), Entity: OfLink(o.Key), Link: l.ID, Action: o.Action, Safety: o.Safety, Actor: actor,
	}
	if e.Action == "" {
		e.Action = ActionDecide
	}
	return e, m.fill(&e, o.Reason, o.Evidence)
}

// fill puts texts into an entry.
func (m *Moderator) fill(e *Entry, reason, evidence string) (err error) {
	if e.Reason, err = NewText(reason, m.cfg.Random); err != nil {
		return err
	}
	e.Evidence, err = NewText(evidence, m.cfg.Random)
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
func (m *Moderator) Erase(ctx context.Context, now time.Time, actor string, sequence uint64, reason string) (Entry, error) {
	if err := checkReason(reason); err != nil {
		return Entry{}, err
	}
	found, err := m.cfg.Journal.Read(ctx, sequence-1, 1) // 0 wraps around, to where nothing is
	if err != nil {
		return Entry{}, fmt.Errorf("find entry %d: %w", sequence, err)
	}
	if len(found) == 0 || found[0].Sequence != sequence {
		return Entry{}, fmt.Errorf("erase entry %d: %w", sequence, ErrNotFound)
	}
	by := Entry{At: instant(now), Entity: found[0].Entity, Link: found[0].Link, Action: ActionErase, Safety: link.Clean, Actor: actor}
	if err := m.fill(&by, fmt.Sprintf(erasedText, sequence)+reason, ""); err != nil {
		return Entry{}, err
	}
	// The number stands in front of the reason, which may have to be shorter for it.
	if by.Validate() != nil {
		return Entry{}, invalid("reason", "is too long")
	}
	m.banning.Lock() // the ban that may stand in memory has the texts too
	defer m.banning.Unlock()
	said, err := m.cfg.Journal.Erase(ctx, sequence, by)
	if err != nil {
		return Entry{}, err
	}
	if ban, ok := m.bans.of(found[0].Entity); ok && ban.Sequence == sequence {
		ban.Reason, ban.Evidence = ban.Reason.Erase(), ban.Evidence.Erase()
		m.bans.put(ban)
	}
	return said, nil
}

// dropNotFound forgives that a link is not there: the journal may know one that never
// came to be, or is gone.
func dropNotFound(err error) error {
	if errors.Is(err, link.ErrNotFound) {
		return nil
	}
	return err
}

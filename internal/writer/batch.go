package writer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/kafka"
	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/pending"
	"curt/internal/weburl"
)

// item is a record on its way into the store.
type item struct {
	record *kgo.Record
	link   link.Link
	dead   error // why it can never be written; nil = it can
}

// write writes what was read, at this member's part of the rate, until ctx ends or the membership has to.
func (s *session) write(ctx context.Context) error {
	tokens, last := 0.0, time.Now()
	pause := tick
	for background.Sleep(ctx, pause) {
		now := time.Now()
		rate := s.share()
		tokens = min(tokens+rate*now.Sub(last).Seconds(), max(1, rate*burst.Seconds()))
		last, pause = now, tick
		if err := s.commit(ctx); err != nil {
			return err
		}
		batch := s.take(ctx, min(int(tokens), mostBatch))
		if len(batch) == 0 {
			s.healthy(ctx)
			continue
		}
		tokens -= float64(len(batch))
		for failed := 0; ; failed++ {
			err := s.store(ctx, batch)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the batch is read again
			}
			s.w.failures.Add(1)
			s.w.fail(err)
			s.failing.Log(ctx, time.Now(), s.w.cfg.Logger, slog.LevelWarn, "writing pending links failed, retrying", err)
			if !background.Sleep(ctx, min(tick<<min(failed, 6), 2*time.Second)) {
				return nil
			}
		}
		s.done(batch)
		s.healthy(ctx)
		if err := s.commit(ctx); err != nil {
			return err
		}
		pause = max(0, tick-time.Since(now))
	}
	return nil
}

func (s *session) healthy(ctx context.Context) {
	s.w.fail(nil)
	s.failing.LogRecovery(ctx, time.Now(), s.w.cfg.Logger, "writing pending links recovered")
}

// take removes up to n records that wait: of each partition in order, the partitions in turn. One of a newer release keeps what is behind
// it waiting, in its partition only.
func (s *session) take(ctx context.Context, n int) (batch []*item) {
	var held []error
	s.mu.Lock()
	for more := true; more && len(batch) < n; {
		more = false
		for i, p := range s.parts {
			if len(p.waiting) == 0 || len(batch) == n || p.held != nil {
				continue
			}
			it := read(p.waiting[0])
			if errors.Is(it.dead, pending.ErrNewer) {
				p.held = fmt.Errorf("partition %d is held up at offset %d: %w", i, it.record.Offset, it.dead)
				held = append(held, p.held)
				continue
			}
			batch, more = append(batch, it), true
			if p.waiting = p.waiting[1:]; p.paused && len(p.waiting) < fewWaiting {
				p.paused = false
				s.group.Resume(i)
			}
		}
	}
	s.mu.Unlock()
	for _, err := range held {
		s.w.cfg.Logger.ErrorContext(ctx, "a queued link of a newer release holds up its partition, update the writers", slog.Any("err", err))
	}
	return batch
}

// read returns a record as an item. What a create would have refused without asking anybody is dead.
func read(r *kgo.Record) *item {
	it := &item{record: r}
	if it.link, it.dead = pending.Decode(r.Value); it.dead == nil {
		it.dead = check(&it.link)
	}
	return it
}

// check holds a link to the rules that need neither settings nor the network: the topic may have been written to by somebody else.
// The store checks the rest. The error wraps link.ErrInvalid.
func check(l *link.Link) error {
	if err := l.Key.Validate(); err != nil {
		return err //nolint:wrapcheck // names the code
	}
	for _, href := range []string{l.Destination, l.Fallback} {
		if u, err := weburl.Parse(href); href != "" && (err != nil || u.Href() != href) {
			return fmt.Errorf("%w: %q is not the normal form of an http or https URL: %w", link.ErrInvalid, href, cmp.Or(err, weburl.ErrInvalid))
		}
	}
	return nil
}

// done notes that a batch was written.
func (s *session) done(batch []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range batch {
		if p := s.parts[it.record.Partition]; p != nil && it.record.Offset >= p.written {
			p.written = it.record.Offset + 1
		}
		if it.dead == nil {
			s.w.written.Add(1)
		}
	}
	s.w.batches.Add(1)
}

// commit tells the group what was written. What it does not take now is told again.
func (s *session) commit(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	type offset struct {
		member string
		at     int64
	}
	due := map[int32]offset{}
	s.mu.Lock()
	for i, p := range s.parts {
		if p.written > p.committed {
			due[i] = offset{p.member, p.written}
		}
	}
	s.mu.Unlock()
	for i, o := range due {
		err := s.group.Commit(ctx, o.member, i, o.at, "")
		switch {
		case errors.Is(err, kafka.ErrNotYet):
			continue
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err //nolint:wrapcheck // says what it did
		}
		s.mu.Lock()
		if p := s.parts[i]; p != nil {
			p.committed = o.at
		}
		s.mu.Unlock()
	}
	return nil
}

// store writes a batch. After an error it may be called again with the same.
func (s *session) store(ctx context.Context, batch []*item) error {
	defer s.w.cfg.BeginWrite()()
	now := time.Now().UTC().Truncate(time.Millisecond)
	var live []*item
	var entries []link.Creation
	for _, it := range batch {
		if it.dead != nil {
			continue
		}
		live, entries = append(live, it), append(entries, link.Creation{Link: it.link})
	}
	if err := s.create(ctx, now, live, entries); err != nil {
		return err
	}
	for _, it := range live {
		if it.dead == nil {
			if err := s.w.cfg.Recheck(ctx, now, &it.link); err != nil {
				return fmt.Errorf("recheck %s: %w", it.link.Key, err)
			}
		}
	}
	return s.bury(ctx, now, batch)
}

// create creates the links of a batch in one write, or one by one where the store refuses the whole.
func (s *session) create(ctx context.Context, now time.Time, live []*item, entries []link.Creation) error {
	if len(entries) == 0 {
		return nil
	}
	results, err := s.w.cfg.Store.CreateMany(ctx, now, entries)
	switch {
	case err == nil:
	case !refused(err):
		return fmt.Errorf("write %d pending links: %w", len(entries), err)
	default:
		results = make([]link.Result, len(entries))
		for i := range entries {
			results[i].Link, results[i].Err = s.w.cfg.Store.Create(ctx, entries[i].Link)
		}
	}
	for i := range results {
		switch err := results[i].Err; {
		case err == nil:
			live[i].link = results[i].Link
		case refused(err):
			live[i].dead = err
		default:
			return fmt.Errorf("write the pending link %s: %w", entries[i].Link.Key, err)
		}
	}
	return nil
}

// refused reports an error which says that a link will never be written.
func refused(err error) bool {
	return errors.Is(err, link.ErrInvalid) || errors.Is(err, link.ErrExists) || errors.Is(err, link.ErrConflict)
}

// bury moves what can never be written to the dead letters, and leaves tombstones.
func (s *session) bury(ctx context.Context, now time.Time, batch []*item) error {
	var records []*kgo.Record
	var reasons []error
	for _, it := range batch {
		if it.dead == nil {
			continue
		}
		if err := s.entomb(ctx, now, it); err != nil {
			return err
		}
		records, reasons = append(records, it.record), append(reasons, it.dead)
	}
	if len(records) == 0 {
		return nil
	}
	if err := s.group.Bury(ctx, records, reasons); err != nil {
		return err //nolint:wrapcheck // says what it did
	}
	for i, r := range records {
		s.w.dead.Add(1)
		s.w.cfg.Logger.ErrorContext(ctx, "pending link cannot be written, moved to the dead letters", slog.Int("partition", int(r.Partition)),
			slog.Int64("offset", r.Offset), slog.String("link", string(r.Key)), slog.Any("err", reasons[i]))
	}
	return nil
}

// entomb takes the code of a link that can never be written, if it is known and no link has it: visitors get 410 with the reason.
func (s *session) entomb(ctx context.Context, now time.Time, it *item) error {
	t, err := tombstone(now, it)
	if err != nil || t.ID.IsZero() {
		return err
	}
	if _, err := s.w.cfg.Store.Create(ctx, t); err != nil && !refused(err) {
		return fmt.Errorf("leave a tombstone of %s: %w", t.Key, err)
	}
	return nil
}

// tombstone returns what is left of a link that can never be written; nothing, where another link has its code, or no link can
// have it. It is one of a Chosen code, because those are in the change log: caches that were told of the link hear that
// it is gone. Its id is of its own where that of the link is unknown, or another link's.
func tombstone(now time.Time, it *item) (t link.Link, err error) {
	l, why := it.link, link.UnwrittenInvalid
	if errors.Is(it.dead, pending.ErrUnreadable) {
		why = link.UnwrittenUnreadable
	}
	if l.Key.Code == "" { // the record cannot be read, but its key
		domain, code, _ := strings.Cut(string(it.record.Key), "/")
		l.Key = link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
	}
	if errors.Is(it.dead, link.ErrExists) || l.Key.Validate() != nil {
		return link.Link{}, nil //nolint:nilerr // the dead letter is all
	}
	t = l.NeverWritten(now, why)
	t.Created, t.CodeKind = now, link.Chosen
	if t.ID.IsZero() || errors.Is(it.dead, link.ErrConflict) {
		if t.ID, err = link.NewID(now, rand.Reader); err != nil {
			return link.Link{}, err //nolint:wrapcheck // says what it did
		}
	}
	if t.Workspace == "" || len(t.Workspace) > link.MaxName {
		t.Workspace = link.WorkspaceDefault
	}
	if t.Safety < link.Clean || t.Safety > link.Legal {
		t.Safety = link.Clean
	}
	return t, nil
}

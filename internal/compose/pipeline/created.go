package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/backend/kafka"
	"curt/internal/compose"
	"curt/internal/feed"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/telemetry"
)

const (
	// createdPage is how many entries of a log are sent together: what may be in Kafka twice after
	// a failure.
	createdPage = 500
	// createdEvery is how often the logs are read.
	createdEvery = time.Second
)

// created sends links that were created to Kafka, from one server of the fleet at a time. The creates
// of counted codes have a log of their own; all others are in the change log
// (docs/decisions/0054-read-creates-in-commit-order.md).
type created struct {
	links   link.Store
	yield   func()
	counted *createdSender
	chosen  *createdSender
}

// openCreated has created links sent to Kafka. Like the clicks, it connects when it sends first.
func (p *Pipeline) openCreated(_ context.Context, c *compose.Capability) error {
	lease, err := p.stores.Lease()
	if err != nil {
		return err
	}
	f := &created{
		links: p.stores.Links, yield: p.env.Background.Yield,
		counted: &createdSender{topic: kafka.NewCreatedLinks(*p.env.Kafka)}, chosen: &createdSender{topic: kafka.NewCreatedLinks(*p.env.Kafka)},
	}
	p.created = f
	for _, s := range []*createdSender{f.counted, f.chosen} {
		c.OnClose(func() error { s.topic.Close(); return nil })
	}
	c.Need("created", false, func() error { return errors.Join(f.counted.healthy(), f.chosen.healthy()) })
	c.Run("created links with counted codes", f.followCounted(p, lease).Run)
	c.Run("created links with chosen codes", f.followChosen(p, lease).Run)
	return nil
}

func (f *created) followCounted(p *Pipeline, lease joblease.Once) *feed.Fleet[link.Position, link.Link] {
	feeds := p.stores.Feeds
	return &feed.Fleet[link.Position, link.Link]{
		Name: "created-links-counted", Page: createdPage, Every: createdEvery, Once: lease, Logger: p.env.Log,
		Log: feed.Log[link.Position, link.Link]{Read: feeds.Creates, Head: feeds.CreatesHead, Short: true}, Positions: feeds.CreateFollowers(),
		Apply:   func(ctx context.Context, page []link.Link, _ uint64) error { return f.counted.send(ctx, page) },
		Rebuild: func(ctx context.Context, _ uint64) error { return f.sendAll(ctx, link.Counted, f.counted) },
	}
}

func (f *created) followChosen(p *Pipeline, lease joblease.Once) *feed.Fleet[link.Position, link.Event] {
	feeds := p.stores.Feeds
	return &feed.Fleet[link.Position, link.Event]{
		Name: "created-links-chosen", Page: createdPage, Every: createdEvery, Once: lease, Logger: p.env.Log,
		Log: feed.Log[link.Position, link.Event]{Read: feeds.Events, Head: feeds.Head}, Positions: feeds.Followers(),
		Apply:   func(ctx context.Context, page []link.Event, _ uint64) error { return f.sendChosen(ctx, page) },
		Rebuild: func(ctx context.Context, _ uint64) error { return f.sendAll(ctx, link.Chosen, f.chosen) },
	}
}

// sendChosen sends the links that entries of the change log say were created. A link that is
// damaged by now has what its entry says.
func (f *created) sendChosen(ctx context.Context, page []link.Event) error {
	page = slices.DeleteFunc(slices.Clone(page), func(e link.Event) bool { return !creates(&e) })
	keys := make([]link.Key, len(page))
	for i := range page {
		keys[i] = page[i].Key
	}
	links, err := link.GetMany(ctx, f.links, keys)
	if err != nil {
		return err
	}
	for i := range links {
		if e := &page[i]; links[i].ID.IsZero() {
			links[i] = link.Link{ID: e.ID, Key: e.Key, Workspace: e.Workspace, CreatedBy: e.Principal, Created: e.At}
		}
	}
	return f.chosen.send(ctx, slices.DeleteFunc(links, func(l link.Link) bool { return l.ID.IsZero() }))
}

// creates reports whether an entry of the change log is the create of a link. The first release with
// a change log wrote no kinds.
func creates(e *link.Event) bool {
	return e.Kind == link.WasCreated || e.Kind == "" && e.Version == 1
}

// sendAll sends all links with one kind of codes, oldest first: at the first start, and after entries
// were trimmed that were not read. Consumers recognise the repeats.
func (f *created) sendAll(ctx context.Context, kind link.CodeKind, to *createdSender) error {
	for page := (link.Page{Limit: createdPage}); ; {
		f.yield()
		slice, err := f.links.List(ctx, link.Filter{Oldest: true}, page)
		if err != nil {
			return err
		}
		err = to.send(ctx, slices.DeleteFunc(slice.Links, func(l link.Link) bool { return l.CodeKind != kind }))
		if err != nil || slice.Next == "" {
			return err
		}
		page.After = slice.Next
	}
}

// createdSender sends the created links of one log, and knows how that goes. Send is for one
// goroutine at a time, the rest for any.
type createdSender struct {
	topic          *kafka.CreatedLinks
	sent, failures atomic.Uint64

	mu    sync.Mutex
	since time.Time // guarded by mu: when Kafka began to fail; zero = it does not, or another server sends
	err   error     // guarded by mu
}

func (s *createdSender) send(ctx context.Context, links []link.Link) error {
	if len(links) == 0 {
		return nil
	}
	err := s.topic.Send(ctx, links)
	switch {
	case err == nil:
		s.sent.Add(uint64(len(links)))
		s.recovered()
	case ctx.Err() == nil:
		s.failures.Add(1)
		s.failed(ctx, time.Now(), err)
	}
	return err
}

// failed keeps a failure until a later batch is sent, or the lease of the job, with ctx, ends.
func (s *createdSender) failed(ctx context.Context, now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; s.since.IsZero() {
		s.since = now
		context.AfterFunc(ctx, s.recovered)
	}
}

func (s *createdSender) recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.err = time.Time{}, nil
}

func (s *createdSender) healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// unsent returns for how long Kafka has been failing.
func (s *createdSender) unsent(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return 0
	}
	return max(0, now.Sub(s.since))
}

// count offers the counters.
func (f *created) count(m *telemetry.Metrics) {
	m.Counter("curt_created_links_sent_total", "Created links acknowledged by Kafka; repeats count again.",
		func() uint64 { return f.counted.sent.Load() + f.chosen.sent.Load() })
	m.Counter("curt_created_links_failures_total", "Batches of created links that Kafka did not acknowledge, each retried.",
		func() uint64 { return f.counted.failures.Load() + f.chosen.failures.Load() })
	m.Gauge("curt_created_links_unsent_seconds", "Time since Kafka began to refuse created links; 0 while it accepts them, and on servers that do not send them.",
		func() float64 { now := time.Now(); return max(f.counted.unsent(now), f.chosen.unsent(now)).Seconds() })
}

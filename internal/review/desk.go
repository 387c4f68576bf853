package review

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
	"curt/internal/ratelimit"
)

// Journal is what the desk reads of a moderation.Journal.
type Journal interface {
	Read(ctx context.Context, after uint64, n int) ([]moderation.Entry, error)
	Find(ctx context.Context, f moderation.Filter, before uint64, n int) ([]moderation.Entry, error)
	EffectiveDecision(ctx context.Context, id link.ID) (moderation.Entry, error)
}

// Moderator is who carries decisions out: a moderator.Moderator.
type Moderator interface {
	// CheckBan returns the ban that stands against what was asked for.
	CheckBan(f *abuse.Facts) (ban moderation.Entry, barred bool)
	// BanOf returns the gravest ban that means a link.
	BanOf(l *link.Link) (ban moderation.Entry, banned bool)
	Decide(ctx context.Context, now time.Time, actor string, orders []moderator.Order) ([]moderator.Outcome, error)
	// DecideDestination decides about a destination, whose case is id.
	DecideDestination(ctx context.Context, now time.Time, actor string, about moderation.Entity, id link.ID, o moderator.Order) (moderation.Entry, error)
	// EraseDestination records that the case of a destination is erased.
	EraseDestination(ctx context.Context, now time.Time, actor string, about moderation.Entity, id link.ID, reason string) error
}

// Links is what the desk reads of a link.Store.
type Links interface {
	Get(ctx context.Context, k link.Key) (link.Link, error)
}

// DayKeys are the keys under which networks are told apart for a day.
type DayKeys interface {
	DayKey(ctx context.Context, day time.Time) ([16]byte, error)
}

// Config is what [New] needs. Everything but the bounds, Log and Metrics is required.
type Config struct {
	Cases   moderation.Cases
	Appeals moderation.Appeals
	// Destinations are those of creates that the score blocked.
	Destinations moderation.Destinations

	Journal   Journal
	Moderator Moderator
	Links     Links
	DayKeys   DayKeys
	Limits    ratelimit.Store

	// ReportLimit and AppealLimit bound what one network (an IPv4 address, an IPv6 /64)
	// may send; nil = no bound.
	ReportLimit, AppealLimit *ratelimit.Limit

	// Due is how long a case may wait for a moderator; 0 = DefaultDue.
	Due time.Duration
	// Quarantine is how many networks (an IPv4 /24, an IPv6 /48) have to report a link on one day of UTC for it to
	// be quarantined until somebody has decided; 0 = reports alone stop nothing.
	Quarantine int
	// WrittenWithin is how much later than its decision a new link may be written; 0 = DefaultWrittenWithin.
	WrittenWithin time.Duration
	// Retention is how long what strangers wrote is kept after the decision; 0 =
	// DefaultRetention.
	Retention time.Duration

	Random  io.Reader // of ids and tokens, normally crypto/rand.Reader
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time // of Run; nil = time.Now
}

// The defaults of Config.
const (
	DefaultDue       = 5 * time.Minute
	DefaultRetention = 90 * 24 * time.Hour
)

// Service is everything about reviews, each part with the collaborators that it needs. It is
// safe for many goroutines. Run must be running: it brings the decisions of the policy into the queue.
type Service struct {
	*Reports
	*Appeals
	*Queue
	*Refused
	*Follower
}

// New returns a Service.
func New(cfg Config) (*Service, error) {
	if cfg.Cases == nil || cfg.Appeals == nil || cfg.Destinations == nil || cfg.Journal == nil || cfg.Moderator == nil || cfg.Links == nil || cfg.DayKeys == nil || cfg.Limits == nil || cfg.Random == nil {
		return nil, errors.New("review: incomplete configuration")
	}
	cfg.Due, cfg.Retention, cfg.WrittenWithin = cmp.Or(cfg.Due, DefaultDue), cmp.Or(cfg.Retention, DefaultRetention), cmp.Or(cfg.WrittenWithin, DefaultWrittenWithin)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	m, open, nets := newMetrics(cfg.Metrics), opener{link.NewIDs(cfg.Random), cfg.Due}, &networks{keys: cfg.DayKeys, log: cfg.Log}
	follower := &Follower{
		cases: cfg.Cases, journal: cfg.Journal, links: cfg.Links, opener: open, within: cfg.WrittenWithin, retention: cfg.Retention,
		metrics: m, log: cfg.Log, now: cfg.Now, kicked: make(chan struct{}, 1),
	}
	gateFor := func(kind string, limit *ratelimit.Limit) gate {
		return gate{kind: kind, limit: limit, limits: cfg.Limits, moderator: cfg.Moderator, limited: m.limited.WithLabelValues(kind)}
	}
	end := closer{cfg.Cases, m, follower.kick}
	return &Service{
		Reports: &Reports{
			cases: cfg.Cases, journal: cfg.Journal, moderator: cfg.Moderator, links: cfg.Links, gate: gateFor("report", cfg.ReportLimit),
			opener: open, networks: nets, quarantineAt: cfg.Quarantine, metrics: m, kick: follower.kick,
		},
		Appeals: &Appeals{
			appeals: cfg.Appeals, destinations: cfg.Destinations, journal: cfg.Journal, moderator: cfg.Moderator, links: cfg.Links,
			gate: gateFor("appeal", cfg.AppealLimit), opener: open, random: cfg.Random, made: m.appeals,
		},
		Queue: &Queue{cases: cfg.Cases, appeals: cfg.Appeals, journal: cfg.Journal, moderator: cfg.Moderator, links: cfg.Links, closer: end},
		Refused: &Refused{
			destinations: cfg.Destinations, cases: cfg.Cases, appeals: cfg.Appeals, journal: cfg.Journal, moderator: cfg.Moderator, opener: open,
			networks: nets, closer: end, metrics: m, log: cfg.Log, now: cfg.Now, referring: make(chan struct{}, 1),
		},
		Follower: follower,
	}, nil
}

package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
	"curt/internal/repeatlog"
)

// Journal is what the desk reads of a moderation.Journal.
type Journal interface {
	Read(ctx context.Context, after uint64, n int) ([]moderation.Entry, error)
	Find(ctx context.Context, f moderation.Filter, before uint64, n int) ([]moderation.Entry, error)
	Standing(ctx context.Context, id link.ID) (moderation.Entry, error)
}

// Moderator is who carries decisions out: a moderation.Moderator.
type Moderator interface {
	// Bars returns the ban that stands against what was asked for.
	Bars(f *abuse.Facts) (ban moderation.Entry, barred bool)
	// BanOf returns the gravest ban that means a link.
	BanOf(l *link.Link) (ban moderation.Entry, banned bool)
	Decide(ctx context.Context, now time.Time, actor string, orders []moderation.Order) ([]moderation.Outcome, error)
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
	Cases     moderation.Cases
	Appeals   moderation.Appeals
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

// Desk takes reports and appeals, and shows moderators what waits for them. It is safe
// for many goroutines. Run must be running, or what the policy decides never comes in.
type Desk struct {
	config  Config
	ids     *link.IDs
	metrics *metrics
	kicked  chan struct{} // capacity 1: the journal has grown
	changed link.Heard

	waiting, overdue atomic.Int64 // cases, as counted last

	keyless, behind repeatlog.Condition
}

// New returns a Desk.
func New(cfg Config) (*Desk, error) {
	if cfg.Cases == nil || cfg.Appeals == nil || cfg.Journal == nil || cfg.Moderator == nil || cfg.Links == nil || cfg.DayKeys == nil || cfg.Limits == nil || cfg.Random == nil {
		return nil, errors.New("review: a part is missing")
	}
	cfg.Due, cfg.Retention = cmp.Or(cfg.Due, DefaultDue), cmp.Or(cfg.Retention, DefaultRetention)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Desk{config: cfg, ids: link.NewIDs(cfg.Random), metrics: newMetrics(cfg.Metrics), kicked: make(chan struct{}, 1)}, nil
}

// Waiting returns how many cases are open, and how many of them have waited too long, as
// Run counted them last, at most some seconds ago.
func (d *Desk) Waiting() (open, overdue int) { return int(d.waiting.Load()), int(d.overdue.Load()) }

// MayReport refuses a caller whose network is banned, or has sent as many reports as it may, and
// spends nothing: it is asked before a report is read.
func (d *Desk) MayReport(ctx context.Context, now time.Time, who auth.Principal) error {
	return d.may(ctx, now, who, "report", d.config.ReportLimit, ratelimit.Peek)
}

// MayAppeal is MayReport for appeals.
func (d *Desk) MayAppeal(ctx context.Context, now time.Time, who auth.Principal) error {
	return d.may(ctx, now, who, "appeal", d.config.AppealLimit, ratelimit.Peek)
}

// admit refuses a network that is banned, and takes one from what the network of a caller
// may send.
func (d *Desk) admit(ctx context.Context, now time.Time, who auth.Principal, what string, l *ratelimit.Limit) error {
	return d.may(ctx, now, who, what, l, spend)
}

// spend and ratelimit.Peek ask a limit.
func spend(ctx context.Context, s ratelimit.Store, now time.Time, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	return s.Spend(ctx, now, charges)
}

func (d *Desk) may(ctx context.Context, now time.Time, who auth.Principal, what string, l *ratelimit.Limit,
	ask func(context.Context, ratelimit.Store, time.Time, []ratelimit.Charge) ([]ratelimit.Verdict, error),
) error {
	if auth.May(who, auth.Moderate, auth.Everywhere()) == nil {
		return nil
	}
	if _, barred := d.config.Moderator.Bars(&abuse.Facts{Network: ratelimit.ClientNetwork(who.Addr)}); barred {
		return ErrBanned
	}
	if l == nil {
		return nil
	}
	bucket := what + ":" + ratelimit.ClientBucket(who.Addr)
	verdicts, err := ask(ctx, d.config.Limits, now, []ratelimit.Charge{{Bucket: bucket, Limit: *l, Cost: 1}})
	if err != nil {
		return fmt.Errorf("ask the rate limit: %w", err)
	}
	if !verdicts[0].Allowed {
		d.metrics.limited.WithLabelValues(what).Inc()
		return &LimitedError{Verdict: verdicts[0]}
	}
	return nil
}

// opening is what a source brings about a link that is there.
func (d *Desk) opening(now time.Time, l *link.Link, source moderation.Sources) (moderation.Opening, error) {
	id, err := d.ids.New(now)
	return moderation.Opening{
		ID: id, Link: moderation.RefOf(l), Facts: factsOf(l), Source: source, At: now, Due: now.Add(d.config.Due),
	}, err
}

package review

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
	"curt/internal/repeatlog"
	"curt/internal/weburl"
)

// gate bounds what the network of a caller may send of one kind.
type gate struct {
	kind      string
	limit     *ratelimit.Limit // nil = no bound
	limits    ratelimit.Store
	moderator Moderator
	limited   prometheus.Counter
}

// admit refuses a network that is banned, and charges the limit of the caller's network.
func (g *gate) admit(ctx context.Context, now time.Time, who auth.Principal) error {
	return g.check(ctx, now, who, spend)
}

func spend(ctx context.Context, s ratelimit.Store, now time.Time, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	return s.Spend(ctx, now, charges)
}

// check is admit with spend, or without a charge with ratelimit.Peek.
func (g *gate) check(ctx context.Context, now time.Time, who auth.Principal,
	charge func(context.Context, ratelimit.Store, time.Time, []ratelimit.Charge) ([]ratelimit.Verdict, error),
) error {
	if auth.May(who, auth.Moderate, auth.Everywhere()) == nil {
		return nil
	}
	if _, barred := g.moderator.CheckBan(&abuse.Facts{Network: ratelimit.ClientNetwork(who.Addr)}); barred {
		return ErrBanned
	}
	if g.limit == nil {
		return nil
	}
	bucket := g.kind + ":" + ratelimit.ClientBucket(who.Addr)
	verdicts, err := charge(ctx, g.limits, now, []ratelimit.Charge{{Bucket: bucket, Limit: *g.limit, Cost: 1}})
	if err != nil {
		return fmt.Errorf("check the rate limit: %w", err)
	}
	if !verdicts[0].Allowed {
		g.limited.Inc()
		return &LimitedError{Verdict: verdicts[0]}
	}
	return nil
}

// opener describes cases that a source opens or adds to.
type opener struct {
	ids *link.IDs
	due time.Duration // after the opening
}

// link is the opening of the case of an existing link.
func (o *opener) link(now time.Time, l *link.Link, source moderation.Sources) (moderation.Opening, error) {
	id, err := o.ids.New(now)
	return moderation.Opening{
		ID: id, Link: moderation.RefOf(l), Facts: factsOf(l), Source: source, At: now, Due: now.Add(o.due),
	}, err
}

// destination is the opening of the case of a refused destination.
func (o *opener) destination(now time.Time, about *moderation.Destination, source moderation.Sources) (moderation.Opening, error) {
	id, err := o.ids.New(now)
	_, host, _ := weburl.Split(about.URL)
	return moderation.Opening{
		ID: id, Link: moderation.Ref{ID: about.ID}, Facts: moderation.Facts{Workspace: about.Workspace, Host: host},
		Source: moderation.FromBlock | source, Score: about.Score, At: now, Due: now.Add(o.due),
	}, err
}

// networks distinguishes networks for a day without their addresses.
type networks struct {
	keys    DayKeys
	log     *slog.Logger
	keyless repeatlog.Condition
}

// digest identifies a network for a day, of reports or of refused creates: a /24 or a /48, because one
// person has several addresses of it. It has nothing in common
// with the tags of that day's visitors. 0 without a key of the day: the report counts, its
// network does not.
func (n *networks) digest(ctx context.Context, now time.Time, of string, addr netip.Addr) uint64 {
	if !addr.IsValid() {
		return 0
	}
	key, err := n.keys.DayKey(ctx, now)
	if err != nil {
		n.keyless.Log(ctx, now, n.log, slog.LevelWarn, "no day key, networks of reports cannot be distinguished", err)
		return 0
	}
	n.keyless.LogRecovery(ctx, now, n.log, "day key available, networks of reports are distinguished again")
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte(of + "\x00" + ratelimit.ClientSurroundings(addr).String()))
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}

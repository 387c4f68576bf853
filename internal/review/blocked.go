package review

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
	"curt/internal/repeatlog"
)

const (
	// Destinations that may wait for a decision. A moderator reads each, so that a queue is full long
	// before a database is. All callers without a key share an account, and are told apart by their
	// networks; a workspace has its own bound, which its neighbors in a network do not use up.
	maxOpenByAccount   = 50
	maxOpenAnonymous   = 500
	maxOpenByNetwork   = 20
	referWithin        = 500 * time.Millisecond // the answer to the create waits no longer for its case
	expireStep         = 100
	expireEvery        = time.Hour
	destinationHistory = 50
)

// Refused is about creates that the score refused: their cases, which have no link.
type Refused struct {
	destinations moderation.Destinations
	cases        moderation.Cases
	appeals      moderation.Appeals
	journal      Journal
	moderator    Moderator

	opener   opener
	networks *networks
	closer   closer
	metrics  *metrics
	log      *slog.Logger
	now      func() time.Time // of RunExpiry

	referring            chan struct{} // capacity 1: held while cases are opened
	unreferred, expiring repeatlog.Condition
}

// Refer puts creates that the score blocked before a moderator, all of one caller, and returns the ids
// of their cases; zero = it has none: too many wait already, or the store is unavailable. One call at
// a time writes, so that a flood of refused creates takes few turns from those that succeed.
func (d *Refused) Refer(ctx context.Context, now time.Time, all []moderation.BlockedCreate) []link.ID {
	ids := make([]link.ID, len(all))
	ctx, cancel := context.WithTimeout(ctx, referWithin)
	defer cancel()
	select {
	case d.referring <- struct{}{}:
		defer func() { <-d.referring }()
	case <-ctx.Done():
		d.metrics.unreferred.Add(float64(len(all)))
		return ids
	}
	refusals, err := d.refusals(ctx, now.UTC().Truncate(time.Millisecond), all)
	if err == nil {
		var named []link.ID
		if named, err = d.destinations.Refuse(ctx, refusals, boundsOf(all[0].Workspace)); err == nil {
			ids = named
		}
	}
	if err != nil {
		d.unreferred.Log(ctx, now, d.log, slog.LevelWarn, "opening the cases of refused creates failed, they are refused without one", err)
	} else {
		d.unreferred.LogRecovery(ctx, now, d.log, "opening the cases of refused creates recovered")
	}
	for _, id := range ids {
		if id.IsZero() {
			d.metrics.unreferred.Inc()
		}
	}
	return ids
}

// boundsOf are how many destinations may wait. Refusals with a key have no network, which bounds none.
func boundsOf(w link.WorkspaceID) moderation.Bounds {
	if w == link.WorkspaceAnonymous {
		return moderation.Bounds{Account: maxOpenAnonymous, Network: maxOpenByNetwork}
	}
	return moderation.Bounds{Account: maxOpenByAccount}
}

// refusals are blocked creates for the store.
func (d *Refused) refusals(ctx context.Context, now time.Time, all []moderation.BlockedCreate) ([]moderation.Refusal, error) {
	refusals := make([]moderation.Refusal, len(all))
	var network uint64
	if all[0].Workspace == link.WorkspaceAnonymous {
		network = d.networks.digest(ctx, now, "refused", all[0].Network.Addr())
	}
	for i := range all {
		b := &all[i]
		id, err := d.opener.ids.New(now)
		if err != nil {
			return nil, err
		}
		refusals[i] = moderation.Refusal{Destination: moderation.Destination{
			ID: id, Workspace: b.Workspace, Digest: moderation.DigestOf(b.URL), URL: b.URL, CreatedBy: b.CreatedBy, Network: network,
			Score: b.Score, Evidence: b.Evidence, Refused: b.Count, First: now, Last: now,
		}, Host: b.Host, Due: now.Add(d.opener.due)}
	}
	return refusals, nil
}

// CaseFile is all that a moderator needs to decide about a destination.
type CaseFile struct {
	moderation.Destination

	Case    moderation.Case
	Appeal  *Appealed          // the newest; nil = none
	History []moderation.Entry // the newest first
}

// ShowCase returns a destination by the id of its case.
func (d *Refused) ShowCase(ctx context.Context, who auth.Principal, id link.ID) (f CaseFile, err error) {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return f, err
	}
	if f.Destination, err = d.destinations.Destination(ctx, id); err != nil {
		return f, err
	}
	if f.Case, err = d.cases.Case(ctx, id); err != nil {
		return f, err
	}
	switch a, err := d.appeals.Of(ctx, id); {
	case err == nil:
		f.Appeal = &Appealed{Appeal: a}
	case !errors.Is(err, moderation.ErrNoAppeal):
		return f, err
	}
	for _, scope := range []link.WorkspaceID{f.Workspace, ""} {
		entries, err := d.journal.Find(ctx, moderation.Filter{Entity: moderation.OfDestination(scope, f.Digest)}, 0, destinationHistory)
		if err != nil {
			return f, fmt.Errorf("read the journal of case %s: %w", id, err)
		}
		f.History = append(f.History, entries...)
	}
	slices.SortFunc(f.History, func(a, b moderation.Entry) int { return int(b.Sequence) - int(a.Sequence) })
	return f, nil
}

// CaseRuling is what a moderator decides about a destination.
type CaseRuling struct {
	ID       link.ID
	Safety   link.Safety // of links to it; Blocked and Legal refuse creates
	Reason   string
	Everyone bool // for all workspaces, not only the one of the case
	Reply    bool // the reason is the answer to the open appeal
}

// DecideCase decides about a destination, in one durable write, and closes its case. From then on
// creates are allowed or refused by it, at other servers as soon as they have followed the journal.
func (d *Refused) DecideCase(ctx context.Context, now time.Time, who auth.Principal, r CaseRuling) (moderation.Entry, error) {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return moderation.Entry{}, err
	}
	if err := (&Ruling{Safety: r.Safety, Reason: r.Reason}).check("reason"); err != nil {
		return moderation.Entry{}, err
	}
	about, err := d.destinations.Destination(ctx, r.ID)
	if err != nil {
		return moderation.Entry{}, err
	}
	order, scope := moderator.Order{Safety: r.Safety, Reason: r.Reason}, about.Workspace
	if r.Reply {
		order.Action = moderation.ActionAnswer
	}
	if r.Everyone {
		scope = ""
	}
	e, err := d.moderator.DecideDestination(ctx, now, who.KeyID, moderation.OfDestination(scope, about.Digest), r.ID, order)
	if err != nil {
		return e, err
	}
	d.closer.close(context.WithoutCancel(ctx), closing(&e, moderation.Ref{ID: r.ID}))
	return e, nil
}

// EraseCase erases the case of a refused create at once: of one that was decided about the digest and the
// decision remain, of others nothing. The journal says who did, before it is done.
func (d *Refused) EraseCase(ctx context.Context, now time.Time, who auth.Principal, id link.ID, reason string) error {
	if err := auth.May(who, auth.Moderate, auth.Resource{}); err != nil {
		return err
	}
	about, err := d.destinations.Destination(ctx, id)
	if err != nil {
		return err
	}
	if err := d.moderator.EraseDestination(ctx, now, who.KeyID, moderation.OfDestination(about.Workspace, about.Digest), id, reason); err != nil {
		return err
	}
	return d.destinations.EraseDestination(context.WithoutCancel(ctx), id)
}

// RunExpiry erases destinations some time after they were refused or decided about, until ctx ends.
// One server of a fleet does.
func (d *Refused) RunExpiry(ctx context.Context) error {
	turns := time.NewTicker(expireEvery)
	defer turns.Stop()
	for {
		now := d.now()
		if err := d.expire(ctx, now); err != nil {
			d.expiring.Log(ctx, now, d.log, slog.LevelWarn, "erasing old destinations failed, retrying", err)
		} else {
			d.expiring.LogRecovery(ctx, now, d.log, "erasing old destinations recovered")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-turns.C:
		}
	}
}

func (d *Refused) expire(ctx context.Context, now time.Time) error {
	for {
		n, err := d.destinations.Expire(ctx, now.Add(-moderation.DestinationRetention), expireStep)
		if err != nil || n < expireStep {
			return err
		}
	}
}

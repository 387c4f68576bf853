package review

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
)

// tokenSize is the random bits of a token: 128 are not guessed.
const tokenSize = 16

// Appeals takes appeals of owners, and shows them the answers.
type Appeals struct {
	appeals      moderation.Appeals
	destinations moderation.Destinations
	journal      Journal
	moderator    Moderator
	links        Links

	gate   gate
	opener opener
	random io.Reader // of tokens
	made   prometheus.Counter
}

// MayAppeal is MayReport for appeals.
func (p *Appeals) MayAppeal(ctx context.Context, now time.Time, who auth.Principal) error {
	return p.gate.check(ctx, now, who, ratelimit.Peek)
}

// Appeal takes what the owner of a link says against what was decided about it, and
// returns the token that shows the answer to whoever has it. The owner is a key of the
// link's workspace that may change links; of a link that was made without a key, whoever
// knows it. Errors: InvalidError, LimitedError, link.ErrNotFound for what is not the
// caller's, ErrNothingToAppeal, moderation.ErrAppealed and ErrAnswered.
func (p *Appeals) Appeal(ctx context.Context, now time.Time, who auth.Principal, k link.Key, reason string) (token string, err error) {
	if err := p.checkAppeal(ctx, now, who, reason); err != nil {
		return "", err
	}
	now = now.UTC().Truncate(time.Millisecond)
	l, err := p.owned(ctx, who, k)
	switch {
	case err != nil:
		return "", err
	case l.Safety == link.Clean:
		return "", ErrNothingToAppeal
	}
	// A link that only a ban means has no decision of its own: 0 is before every answer,
	// so that it can be appealed for once.
	standing, err := p.journal.EffectiveDecision(ctx, l.ID)
	if err != nil && !errors.Is(err, moderation.ErrNotFound) {
		return "", fmt.Errorf("read the decision of %s: %w", k, err)
	}
	o, err := p.opener.link(now, &l, moderation.FromAppeal)
	if err != nil {
		return "", err
	}
	return p.openAppeal(ctx, who, o, standing.Sequence, reason)
}

// AppealCase is Appeal for a destination that the caller was refused, by the id of its case. The owner
// is a key of the workspace that may change links; of a create without a key, anyone with the id.
func (p *Appeals) AppealCase(ctx context.Context, now time.Time, who auth.Principal, id link.ID, reason string) (token string, err error) {
	if err := p.checkAppeal(ctx, now, who, reason); err != nil {
		return "", err
	}
	about, err := p.destinations.Destination(ctx, id)
	if err != nil {
		return "", err
	}
	if about.Workspace != link.WorkspaceAnonymous {
		err = auth.May(who, auth.ChangeLink, auth.In(about.Workspace))
	}
	switch {
	case errors.Is(err, link.ErrNotFound):
		return "", fmt.Errorf("appeal for case %s: %w", id, moderation.ErrNoDestination)
	case err != nil:
		return "", err
	case about.Decided != 0 && moderation.Allows(about.Decided):
		return "", ErrNothingToAppeal
	}
	o, err := p.opener.destination(now.UTC().Truncate(time.Millisecond), &about, moderation.FromAppeal)
	if err != nil {
		return "", err
	}
	return p.openAppeal(ctx, who, o, about.Sequence, reason)
}

// checkAppeal refuses an appeal that no one may send, and takes it off the caller's limit.
func (p *Appeals) checkAppeal(ctx context.Context, now time.Time, who auth.Principal, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return invalid("reason", "is required")
	}
	if err := checkText("reason", reason, moderation.MaxReportText, true); err != nil {
		return err
	}
	return p.gate.admit(ctx, now, who)
}

// openAppeal stores an appeal against a decision, and returns its token.
func (p *Appeals) openAppeal(ctx context.Context, who auth.Principal, o moderation.Opening, against uint64, reason string) (token string, err error) {
	a := moderation.Appeal{Link: o.Link, At: o.At, By: who.KeyID, Reason: reason, Against: against}
	if a.ID, err = p.opener.ids.New(o.At); err != nil {
		return "", err
	}
	if token, a.Token, err = p.newToken(); err != nil {
		return "", err
	}
	if _, err := p.appeals.Open(ctx, a, o); err != nil {
		return "", err
	}
	p.made.Inc()
	return token, nil
}

// owned returns a link that the caller may appeal for.
func (p *Appeals) owned(ctx context.Context, who auth.Principal, k link.Key) (link.Link, error) {
	l, err := p.links.Get(ctx, k)
	switch {
	case err != nil:
		return l, fmt.Errorf("get %s: %w", k, err)
	case l.Status == link.Deleted:
	case l.Workspace == link.WorkspaceAnonymous:
		return l, nil
	default:
		return l, auth.May(who, auth.ChangeLink, auth.In(l.Workspace))
	}
	return link.Link{}, fmt.Errorf("appeal for %s: %w", k, link.ErrNotFound)
}

func (p *Appeals) newToken() (token string, sum moderation.Hash, err error) {
	var b [tokenSize]byte
	if _, err := io.ReadFull(p.random, b[:]); err != nil {
		return "", sum, fmt.Errorf("read random bits of a token: %w", err)
	}
	token = base64.RawURLEncoding.EncodeToString(b[:])
	return token, sha256.Sum256([]byte(token)), nil
}

// Appealed is an appeal, with what holds of its link: that is not what was decided where
// a ban means the link too, or where something else was decided since.
type Appealed struct {
	moderation.Appeal

	Now    *link.Link // as it is; nil = deleted
	Banned bool       // a ban holds the link to more than was decided
}

func appealed(m Moderator, a moderation.Appeal, l *link.Link) Appealed {
	seen := Appealed{Appeal: a, Now: l}
	if l != nil && !a.IsOpen() {
		seen.Banned = held(m, l, a.Safety).Sequence != 0
	}
	return seen
}

// AppealBy returns the appeal that a token was given for; moderation.ErrNoAppeal for
// what is no token.
func (p *Appeals) AppealBy(ctx context.Context, token string) (Appealed, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return Appealed{}, moderation.ErrNoAppeal
	}
	a, err := p.appeals.By(ctx, sha256.Sum256([]byte(token)))
	if err != nil {
		return Appealed{}, err
	}
	l, err := linkOf(ctx, p.links, a.Link)
	if err != nil {
		return Appealed{}, err
	}
	return appealed(p.moderator, a, l), nil
}

// AppealOf returns the newest appeal for a link to whoever may read the link.
func (p *Appeals) AppealOf(ctx context.Context, who auth.Principal, k link.Key) (Appealed, error) {
	l, err := p.links.Get(ctx, k)
	switch {
	case err != nil:
		return Appealed{}, fmt.Errorf("get %s: %w", k, err)
	case l.Status == link.Deleted || auth.May(who, auth.Unrestricted, auth.In(l.Workspace)) != nil:
		return Appealed{}, fmt.Errorf("get %s: %w", k, link.ErrNotFound)
	}
	a, err := p.appeals.Of(ctx, l.ID)
	if err != nil {
		return Appealed{}, err
	}
	return appealed(p.moderator, a, &l), nil
}

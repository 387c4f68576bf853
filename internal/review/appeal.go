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

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
)

// tokenSize is the random bits of a token: 128 are not guessed.
const tokenSize = 16

// Appeal takes what the owner of a link says against what was decided about it, and
// returns the token that shows the answer to whoever has it. The owner is a key of the
// link's workspace that may change links; of a link that was made without a key, whoever
// knows it. Errors: InvalidError, LimitedError, link.ErrNotFound for what is not the
// caller's, ErrNothingToAppeal, moderation.ErrAppealed and ErrAnswered.
func (d *Desk) Appeal(ctx context.Context, now time.Time, who auth.Principal, k link.Key, reason string) (token string, err error) {
	if strings.TrimSpace(reason) == "" {
		return "", invalid("reason", "is required: say why the decision is wrong")
	}
	if err := checkText("reason", reason, moderation.MaxReportText, true); err != nil {
		return "", err
	}
	if err := d.admit(ctx, now, who, "appeal", d.config.AppealLimit); err != nil {
		return "", err
	}
	now = now.UTC().Truncate(time.Millisecond)
	l, err := d.owned(ctx, who, k)
	switch {
	case err != nil:
		return "", err
	case l.Safety == link.Clean:
		return "", ErrNothingToAppeal
	}
	// A link that only a ban means has no decision of its own: 0 is before every answer,
	// so that it can be appealed for once.
	standing, err := d.config.Journal.Standing(ctx, l.ID)
	if err != nil && !errors.Is(err, moderation.ErrNotFound) {
		return "", fmt.Errorf("read what stands of %s: %w", k, err)
	}
	o, err := d.opening(now, &l, moderation.FromAppeal)
	if err != nil {
		return "", err
	}
	a := moderation.Appeal{Link: o.Link, At: now, By: who.KeyID, Reason: reason, Against: standing.Sequence}
	if a.ID, err = d.ids.New(now); err != nil {
		return "", err
	}
	if token, a.Token, err = d.newToken(); err != nil {
		return "", err
	}
	if _, err := d.config.Appeals.Open(ctx, a, o); err != nil {
		return "", err
	}
	d.metrics.appeals.Inc()
	return token, nil
}

// owned returns a link that the caller may appeal for.
func (d *Desk) owned(ctx context.Context, who auth.Principal, k link.Key) (link.Link, error) {
	l, err := d.config.Links.Get(ctx, k)
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

func (d *Desk) newToken() (token string, sum moderation.Hash, err error) {
	var b [tokenSize]byte
	if _, err := io.ReadFull(d.config.Random, b[:]); err != nil {
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

func (d *Desk) appealed(a moderation.Appeal, l *link.Link) Appealed {
	seen := Appealed{Appeal: a, Now: l}
	if l != nil && !a.IsOpen() {
		seen.Banned = d.held(l, a.Safety).Sequence != 0
	}
	return seen
}

// AppealBy returns the appeal that a token was given for; moderation.ErrNoAppeal for
// what is no token.
func (d *Desk) AppealBy(ctx context.Context, token string) (Appealed, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return Appealed{}, moderation.ErrNoAppeal
	}
	a, err := d.config.Appeals.By(ctx, sha256.Sum256([]byte(token)))
	if err != nil {
		return Appealed{}, err
	}
	l, err := d.linkOf(ctx, a.Link)
	if err != nil {
		return Appealed{}, err
	}
	return d.appealed(a, l), nil
}

// AppealOf returns the newest appeal for a link to whoever may read the link.
func (d *Desk) AppealOf(ctx context.Context, who auth.Principal, k link.Key) (Appealed, error) {
	l, err := d.config.Links.Get(ctx, k)
	switch {
	case err != nil:
		return Appealed{}, fmt.Errorf("get %s: %w", k, err)
	case l.Status == link.Deleted || auth.May(who, auth.Ask, auth.In(l.Workspace)) != nil:
		return Appealed{}, fmt.Errorf("get %s: %w", k, link.ErrNotFound)
	}
	a, err := d.config.Appeals.Of(ctx, l.ID)
	if err != nil {
		return Appealed{}, err
	}
	return d.appealed(a, &l), nil
}

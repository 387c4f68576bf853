// Package reserve says which aliases are free, and holds them for callers who are about to create a link. Read
// reserve.go; remember.go keeps a popular alias from costing a read for each who asks, suggest.go
// proposes others. Creates ask this package only what the store has refused a moment ago: all else the store of links
// decides.
package reserve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
)

// Hold is how long an alias is held.
const Hold = 5 * time.Minute

// DefaultMost is how many aliases a workspace may hold at once.
const DefaultMost = 20

// Aliases says which aliases are free, and holds them. It is safe for many goroutines.
type Aliases struct {
	cfg      Config
	reserver link.Reserver // nil = the store is none
	memory   *memory
}

// Config is what [New] needs.
type Config struct {
	Store link.Store
	Rules *shorten.Rules
	Most  int // aliases that a workspace holds at once; 0 = DefaultMost, below 0 = none are reserved

	// Charge takes one reservation off the caller's limits.
	Charge func(context.Context, time.Time, auth.Principal) (*ratelimit.Verdict, error)
	// CheckCaller refuses who may create no links.
	CheckCaller func(auth.Principal) error
}

// New returns Aliases.
func New(cfg Config) *Aliases {
	if cfg.Most == 0 {
		cfg.Most = DefaultMost
	}
	a := &Aliases{cfg: cfg, memory: newMemory()}
	a.reserver, _ = cfg.Store.(link.Reserver)
	return a
}

// Availability says whether a create by the caller could have an alias now.
type Availability struct {
	Err         error            // nil = it could; otherwise what the create would answer
	Reservation link.Reservation // that holds the alias, the caller's too; zero = there is none
	Suggestions []link.Code      // other aliases that were free, of one that the caller cannot have
}

// Check returns whether a create by the caller could have an alias now. What is taken or held is remembered
// for a minute at most, and not beyond its end; what is free is asked for each time. Nothing is held for the
// caller by it. Errors: those of auth and of the store.
func (a *Aliases) Check(ctx context.Context, now time.Time, who auth.Principal, domain link.Domain, alias string) (Availability, error) {
	if err := auth.May(who, auth.CreateLink, auth.Resource{}); err != nil {
		return Availability{}, err
	}
	k := link.Key{Domain: domain, Code: link.Code(alias)}
	base, invalid := alias, a.cfg.Rules.CheckAlias(alias)
	if invalid != nil {
		k.Code = outside(k.Code)
	}
	if errors.Is(invalid, shorten.ErrReserved) || errors.Is(invalid, shorten.ErrRefused) {
		base = "" // nothing like it is suggested
	}
	suffices := func(known *known) bool { return known.asked || refusal(known.Occupant, who.Workspace) == nil }
	known, err := a.find(ctx, now, k, base, suffices)
	if err != nil {
		return Availability{}, err
	}
	found := Availability{Err: cmp.Or(invalid, refusal(known.Occupant, who.Workspace)), Reservation: known.Reservation}
	if found.Err == nil {
		return found, nil
	}
	found.Suggestions = a.memory.free(now, k, known.others)
	if len(found.Suggestions) < min(Suggestions, len(known.others)) { // others have them by now
		a.memory.forget(k)
		if known, err = a.find(ctx, now, k, base, suffices); err != nil {
			return Availability{}, err
		}
		found.Suggestions = a.memory.free(now, k, known.others)
	}
	return found, nil
}

// outside returns what stands for an alias that no link may have: it is no code, so that it is not taken for one that a link
// may have, and no longer than one.
func outside(alias link.Code) link.Code { return "?" + alias[:min(len(alias), link.MaxCode)] }

// isOutside reports whether outside returned a code.
func isOutside(code link.Code) bool { return code != "" && code[0] == '?' }

// Free returns nil for a code that a create by the caller could have as its alias now, and otherwise what the
// create would answer: an InvalidError, ErrReserved, ErrRefused, ErrTaken or a link.HeldError.
func (a *Aliases) Free(ctx context.Context, now time.Time, who auth.Principal, domain link.Domain, alias string) error {
	found, err := a.Check(ctx, now, who, domain, alias)
	return errors.Join(err, found.Err)
}

// refusal is what a create of a workspace would be answered.
func refusal(o link.Occupant, w link.WorkspaceID) error {
	switch {
	case o.Linked:
		return shorten.ErrTaken
	case o.Held() && o.Reservation.Workspace != w:
		return &link.HeldError{Reservation: o.Reservation}
	}
	return nil
}

// Reserve holds an alias for the caller's workspace for the time Hold. found says that the workspace held it
// already: that reservation is returned, and lasts no longer. Errors: those of Free, ErrNoReservations,
// link.ErrTooManyReservations, BannedError, LimitedError, those of auth and of the store; link.ErrUncertain:
// it may be held.
func (a *Aliases) Reserve(ctx context.Context, now time.Time, who auth.Principal, domain link.Domain, alias string) (r link.Reservation, found bool, v *ratelimit.Verdict, err error) {
	if err := a.admit(who); err != nil {
		return r, false, nil, err
	}
	if a.cfg.Most < 0 {
		return r, false, nil, shorten.ErrNoReservations
	}
	if v, err = a.cfg.Charge(ctx, now, who); err != nil {
		return r, false, nil, err
	}
	if err := a.cfg.Rules.CheckAlias(alias); err != nil {
		return r, false, v, err
	}
	if err := a.cfg.CheckCaller(who); err != nil {
		return r, false, v, err
	}
	k := link.Key{Domain: domain, Code: link.Code(alias)}
	known, err := a.find(ctx, now, k, alias, func(*known) bool { return true })
	if err != nil {
		return r, false, v, err
	}
	if err := refusal(known.Occupant, who.Workspace); err != nil {
		return r, false, v, err
	}
	done, err := a.memory.turn(ctx, k) // of many callers who found it free one asks the store at a time
	if err != nil {
		return r, false, v, fmt.Errorf("reserve %s: %w", k, err)
	}
	defer done()
	if known, ok := a.memory.recall(now, k); ok {
		if err := refusal(known.Occupant, who.Workspace); err != nil {
			return r, false, v, err
		}
	}
	r, found, err = a.reserver.Reserve(ctx, link.Claim{Key: k, Workspace: who.Workspace, For: Hold, Most: a.cfg.Most})
	held, refused := errors.AsType[*link.HeldError](err)
	switch {
	case err == nil:
		a.memory.note(now, k, link.Occupant{Reservation: r})
	case refused:
		a.memory.note(now, k, link.Occupant{Reservation: held.Reservation})
		err = held
	case errors.Is(err, link.ErrExists):
		a.memory.note(now, k, link.Occupant{Linked: true})
		err = shorten.ErrTaken
	}
	return r, found, v, err
}

// admit refuses who can neither hold an alias nor release one.
func (a *Aliases) admit(who auth.Principal) error {
	switch err := auth.May(who, auth.CreateLink, auth.Resource{}); {
	case err != nil:
		return err
	case who.IsAnonymous():
		return auth.ErrUnauthenticated
	case a.reserver == nil:
		return shorten.ErrNoReservations
	}
	return nil
}

// Release gives an alias back that the caller's workspace holds; an admin gives back whatever is held.
// shorten.ErrNotHeld: it holds none. What was reserved can be released where nothing more is reserved.
func (a *Aliases) Release(ctx context.Context, who auth.Principal, domain link.Domain, alias string) error {
	if err := a.admit(who); err != nil {
		return err
	}
	k := link.Key{Domain: domain, Code: link.Code(alias)}
	err := a.reserver.Release(ctx, k, auth.Within(who, ""))
	a.memory.forget(k) // also when nobody knows whether it is held
	if errors.Is(err, link.ErrNotFound) {
		return shorten.ErrNotHeld
	}
	return err
}

// Refuse returns what the store would answer a create of a workspace, where that is known of the alias: ErrTaken or a
// link.HeldError. nil = the store decides.
func (a *Aliases) Refuse(now time.Time, w link.WorkspaceID, k link.Key) error {
	return a.memory.refuse(now, w, k)
}

// Begin is Refuse for a create that may wait until another of the same alias has been answered: of many at the same time
// one asks the store. Without an error the caller calls done once the store has answered and Found was told.
func (a *Aliases) Begin(ctx context.Context, now time.Time, w link.WorkspaceID, k link.Key) (done func(), err error) {
	return a.memory.first(ctx, k, func() error { return a.memory.refuse(now, w, k) })
}

// Found is told what has an alias after a create of a workspace: its own link, or what the store refused it for.
func (a *Aliases) Found(now time.Time, w link.WorkspaceID, k link.Key, o link.Occupant) {
	a.memory.refused(now, w, k, o)
}

// find returns what has an alias, and which others like base are free, from memory where that suffices, or in one read that
// all share who ask at the same time.
func (a *Aliases) find(ctx context.Context, now time.Time, k link.Key, base string, suffices func(*known) bool) (known, error) {
	if known, ok := a.memory.recall(now, k); ok && suffices(&known) {
		return known, nil
	}
	return a.memory.share(ctx, k, func() (known, error) {
		if known, ok := a.memory.recall(now, k); ok && known.asked { // somebody has looked since
			return known, nil
		}
		found, err := a.ask(ctx, now, k, base)
		if err != nil {
			return found, fmt.Errorf("find %s: %w", k, err)
		}
		if found.Linked || found.Held() || isOutside(k.Code) {
			a.memory.keep(now, k, found)
		}
		return found, nil
	})
}

// ask asks the store for an alias and its suggestions in one read, and in further ones where almost all of them are taken.
func (a *Aliases) ask(ctx context.Context, now time.Time, k link.Key, base string) (found known, err error) {
	next, stop := iter.Pull(a.suggest(now, k, base))
	defer stop()
	var keys []link.Key
	if !isOutside(k.Code) {
		keys = []link.Key{k}
	}
	own := len(keys)
	for page, most := 0, candidates; page <= mostPages; page, most, own, keys = page+1, link.MaxPage, 0, nil {
		for other, ok := next(); ok; other, ok = next() {
			if keys = append(keys, other); len(keys) == own+most {
				break
			}
		}
		if len(keys) == 0 {
			break
		}
		occupants, err := a.occupants(ctx, keys)
		if err != nil {
			return found, err
		}
		if own > 0 {
			found.Occupant = occupants[0]
		}
		for i, o := range occupants[own:] {
			if !o.Linked && !o.Held() {
				found.others = append(found.others, keys[own+i].Code)
			}
		}
		if free := !isOutside(k.Code) && !found.Linked && !found.Held(); free || len(found.others) >= Suggestions {
			break
		}
	}
	found.asked = true
	return found, nil
}

// occupants asks the store what has each of some keys.
func (a *Aliases) occupants(ctx context.Context, keys []link.Key) ([]link.Occupant, error) {
	if a.reserver != nil {
		return a.reserver.Occupants(ctx, keys)
	}
	links, err := link.GetMany(ctx, a.cfg.Store, keys)
	if err != nil {
		return nil, err
	}
	occupants := make([]link.Occupant, len(links))
	for i := range links {
		occupants[i].Linked = links[i].Version > 0
	}
	return occupants, nil
}

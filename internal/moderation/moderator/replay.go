package moderator

import (
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/bans"
)

// Replay is what a journal says when it is read from its beginning: what every link
// should be, found without a Moderator, so that its work can be judged by it. It holds the
// links that something was decided about, and the bans.
type Replay struct {
	own  map[link.ID]standing // what is not Clean
	bans *bans.Set
}

// standing is what stands of a link's own decisions, and the newest that a person made.
type standing struct{ newest, person link.Safety }

// NewReplay returns the replay of an empty journal.
func NewReplay() *Replay {
	return &Replay{own: map[link.ID]standing{}, bans: bans.New()}
}

// Take takes the next entry.
func (r *Replay) Take(e *moderation.Entry) {
	switch e.Action {
	case moderation.ActionDecide, moderation.ActionAnswer:
		if e.Entity.Kind == moderation.KindLink {
			r.decide(e)
		}
	case moderation.ActionBan:
		r.bans.Put(*e)
	case moderation.ActionLift:
		r.bans.Drop(e.Entity)
	case moderation.ActionErase, moderation.ActionList, moderation.ActionUnlist:
	}
}

func (r *Replay) decide(e *moderation.Entry) {
	own := r.own[e.Link]
	if e.Actor != moderation.ActorPolicy {
		own.person = e.Safety
	}
	own.newest = moderation.Prevailing(*e, moderation.Entry{Safety: own.person}).Safety
	if own.newest <= link.Clean && own.person <= link.Clean {
		delete(r.own, e.Link)
	} else {
		r.own[e.Link] = own
	}
}

// EffectiveSafety returns the safety that a link should have.
func (r *Replay) EffectiveSafety(l *link.Link) link.Safety {
	return max(r.bans.Safety(l), r.own[l.ID].newest)
}

// Bans returns how many bans stand.
func (r *Replay) Bans() int { return r.bans.Len() }

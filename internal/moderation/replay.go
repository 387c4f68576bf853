package moderation

import "curt/internal/link"

// Replay is what a journal says when it is read from its beginning: what every link
// should be, found without a Moderator, so that its work can be judged by it. It holds the
// links that something was decided about, and the bans.
type Replay struct {
	own  map[link.ID]standing // what is not Clean
	bans *banSet
}

// standing is what stands of a link's own decisions, and the newest that a person made.
type standing struct{ newest, person link.Safety }

// NewReplay returns the replay of an empty journal.
func NewReplay() *Replay {
	return &Replay{own: map[link.ID]standing{}, bans: newBanSet()}
}

// Take takes the next entry.
func (r *Replay) Take(e *Entry) {
	switch e.Action {
	case ActionDecide, ActionAnswer:
		r.decide(e)
	case ActionBan:
		r.bans.put(*e)
	case ActionLift:
		r.bans.drop(e.Entity)
	case ActionErase:
	}
}

func (r *Replay) decide(e *Entry) {
	own := r.own[e.Link]
	if e.Actor != ActorPolicy {
		own.person = e.Safety
	}
	own.newest = Stands(*e, Entry{Safety: own.person}).Safety
	if own.newest <= link.Clean && own.person <= link.Clean {
		delete(r.own, e.Link)
	} else {
		r.own[e.Link] = own
	}
}

// Holds returns the safety that a link should have.
func (r *Replay) Holds(l *link.Link) link.Safety { return max(r.bans.means(l), r.own[l.ID].newest) }

// Bans returns how many bans stand.
func (r *Replay) Bans() int { return r.bans.len() }

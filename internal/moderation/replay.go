package moderation

import "curt/internal/link"

// Replay is what a journal says when it is read from its beginning: what every link
// should be, found without a Moderator, so that its work can be judged by it. It holds the
// links that something was decided about, and the bans.
type Replay struct {
	own  map[link.ID]link.Safety // what is not Clean
	bans *banSet
}

// NewReplay returns the replay of an empty journal.
func NewReplay() *Replay {
	return &Replay{own: map[link.ID]link.Safety{}, bans: newBanSet()}
}

// Take takes the next entry.
func (r *Replay) Take(e *Entry) {
	switch e.Action {
	case ActionDecide, ActionAnswer:
		if e.Safety == link.Clean {
			delete(r.own, e.Link)
		} else {
			r.own[e.Link] = e.Safety
		}
	case ActionBan:
		r.bans.put(*e)
	case ActionLift:
		r.bans.drop(e.Entity)
	case ActionErase:
	}
}

// Holds returns the safety that a link should have.
func (r *Replay) Holds(l *link.Link) link.Safety { return max(r.bans.means(l), r.own[l.ID]) }

// Bans returns how many bans stand.
func (r *Replay) Bans() int { return r.bans.len() }

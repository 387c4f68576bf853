package lists

import (
	"slices"
	"strings"

	"curt/internal/abuse"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/lists"
)

// maxBans bounds one import of blocked destinations: each is a ban, with a walk through the links.
const maxBans = 1000

// bans returns the bans that are blocked destinations, in order of their names: of domains, and of
// addresses, that block links or take them down. Of a name with both there is one.
func (l *Lists) bans() []moderation.Entry {
	var found []moderation.Entry
	for _, b := range l.Moderator.Bans() {
		if e := b.Entry; e.Safety >= link.Blocked && e.Entity == banOf(e.Entity.Name) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b moderation.Entry) int { return strings.Compare(a.Entity.Name, b.Entity.Name) })
	return found
}

// banOf returns what is banned to block a destination.
func banOf(host string) moderation.Entity {
	if abuse.IsAddress(host) || strings.Contains(host, ":") {
		return moderation.Entity{Kind: moderation.KindHost, Name: host}
	}
	return moderation.Entity{Kind: moderation.KindDomain, Name: host}
}

// changeBans bans destinations, or lifts their bans, and returns how many. A ban of a lesser
// safety is replaced; one of a greater one stays.
func (l *Lists) changeBans(c *kernel.Call, action moderation.Action, lines []lists.Line, reason string) (changed int, err error) {
	if len(lines) > maxBans {
		return 0, kernel.BadField("text", "expected at most 1,000 blocked destinations")
	}
	if err := moderation.CheckReason(reason); err != nil {
		return 0, err
	}
	of, err := lists.ParseAll(action, moderation.KindAllowedDestination, lines, nil)
	if err != nil {
		return 0, err
	}
	active := map[moderation.Entity]uint64{}
	for _, e := range l.bans() {
		active[e.Entity] = e.Sequence
	}
	for _, e := range of {
		e = banOf(e.Name)
		sequence := active[e]
		if (sequence == 0) != (action == moderation.ActionList) {
			continue
		}
		if action == moderation.ActionList {
			_, err = l.Moderator.Ban(c.R.Context(), c.Now, c.Who.KeyID, e, link.Blocked, reason)
		} else {
			_, err = l.Moderator.Lift(c.R.Context(), c.Now, c.Who.KeyID, sequence, reason)
		}
		if err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// Package review is where people judge links: strangers report them, owners appeal,
// moderators decide. Read desk.go, which composes the parts, then queue.go and
// follow.go; blocked.go is about creates that the score refused, whose cases have no link.
//
//	the journal ── follow ──┐
//	a report ───────────────┼─► moderation.Cases ─► the queue ─► Moderator.Decide ─► the journal
//	an appeal ──────────────┘
//
// # What it promises
//
// A report alone stops no link: it puts the link before a moderator. Only where the
// operator says so does a link that many networks report on one day wait behind the
// warning page until somebody has looked at it, and never one that a moderator has
// decided about before.
//
// Whoever reports learns nothing about the link, not even whether there is one. What
// they write is shown to moderators, kept beside the case and not in the journal, erased
// some time after the decision, and never logged. No address is kept: networks are told
// apart by a digest under the key of the day, which is destroyed with the day.
//
// An appeal is answered once. Another waits for another decision.
//
// The package reaches no SQL. It imports moderation, auth and what is below them.
package review

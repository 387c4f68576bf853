// Package moderation decides about links and writes down why. Package abuse says what
// is known about a destination; here it takes effect.
//
//	signals ─► abuse.Decide ─┐
//	a moderator ─────────────┼─► Journal.Append ─► link.Safety ─► caches
//	a ban, an appeal ────────┘        first             then       then
//
// Nothing takes effect before the journal has it, so that whatever a process was doing
// when it died, the journal knows at least as much as the links: what is missing in them
// is made good at the next start. The journal alone rebuilds the safety of every link.
//
// A link's safety is the gravest of its own standing decision and of the bans that mean
// it. It is written by this package and by the creation of a link, and by nobody else;
// status is the owner's.
package moderation

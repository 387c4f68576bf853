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
// A create that is refused has no link: what is decided is its Destination, which each server keeps in
// memory, and asks before it asks the policy.
//
// A link's safety is the gravest of its own standing decision and of the bans that mean
// it. It is written by package moderator and by the creation of a link, and by nobody else;
// status is the owner's.
//
// This package has the contracts: read journal.go, then entry.go for what an entry is and
// chain.go for what proves that the journal is whole; cases.go is the review queue. Package
// moderator, in a folder below, decides; package bans has the bans in memory.
package moderation

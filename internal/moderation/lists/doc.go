// Package lists has the lists that moderators maintain: words and look-alikes that are refused as
// aliases, and destinations that are allowed whatever their score is. Lines are rows of the
// accounts store, written together with their journal entries. Every server holds them in memory
// and follows the journal.
//
// Blocked destinations are no list of this package: each is a ban (package moderator), which holds
// existing links too.
//
// Read line.go for what a line may be, then keeper.go for a change on its way to every server, and
// snapshot.go for the checks of a create.
package lists

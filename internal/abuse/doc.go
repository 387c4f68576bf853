// Package abuse knows which destinations do harm. So far it asks one thing: whether a
// host stands in a blocklist that the operator keeps as a file.
//
// [Blocklists.Match] answers from memory, in well under a microsecond for each list,
// and is asked when a link is made or changed, never by a redirect: a link that was
// made before its host was listed goes on until somebody disables it. The package
// does no network I/O, and its only effect is its answer.
//
// Read blocklists.go for what is promised about the files, format.go for what may stand
// in them, match.go for which hosts a line means.
package abuse

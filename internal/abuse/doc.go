// Package abuse judges where links lead. [Signal] looks at one thing: whether a host
// stands in a list that the operator keeps, reads like a brand, is a bare address.
// [Panel] asks all of them, and [Decide] makes of what they found what is to be done, by
// the operator's [Policy].
//
// It is asked when a link is made or changed, never by a redirect, and answers from
// memory in microseconds: it does no network I/O, and its only effect is its answer. A
// link that was made before its host was listed goes on until somebody decides about it.
//
// [Words] are the aliases that the operator keeps or refuses, in files like the lists.
//
// Read signal.go for the contract and decide.go for the sum; skeleton.go and lookalike.go
// for what imitates; files.go for what is promised about the operator's lists,
// format.go, adblock.go and csv.go for what may stand in them, expression.go and match.go
// for which URLs an entry means, digests.go for what it takes in memory.
package abuse

// Package abuse judges where links lead. A [Signal] inspects one aspect: whether a host is
// in a list that the operator keeps, reads like a brand, is a bare address. A [Panel] runs
// all of them, and [Decide] turns their findings into a decision by the operator's [Policy].
//
// Links are judged when they are created or changed, never during a redirect, and from
// memory within microseconds: there is no network I/O, and the only effect is the answer. A
// link that was created before its host was listed stays until the recheck finds it.
//
// Read signal.go for the contract, then panel.go and decide.go. The signals are in the
// folders below: blocklist has the operator's lists of destinations and of words, lookalike
// the imitations of brands, signals all others. They read files through listfile, and compare
// what texts look like through skeleton.
package abuse

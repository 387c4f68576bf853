// Package bodies bounds what the bodies of requests take of the memory, those of all
// requests together. Read budget.go first.
//
// # What it promises
//
// A body takes as much as it has sent, and at most a step more: what it announces counts for
// nothing. A body that may have Small bytes at the most takes from the small share. One that may
// have more takes from the first share until it has more, then all of it from the large share. So
// small bodies never wait for large ones.
//
// A body that finds no room waits, at most Patience, then its Read fails with [ErrFull]. It
// keeps what it has meanwhile, so room is given only where some body that began could still
// become as large as any may and end: bodies that each wait for the rest of themselves cannot
// stop each other for good. Where one waits for longer than Slow, those that hold room and send
// nothing, or little, are stopped with [ErrSlow], the slowest first, until there is enough. While
// nobody waits a body may be as slow as the server lets it.
//
// What is made of a large body takes several times its size. [Body.Work] lets as many at a
// time be worked on as the work share holds, in turn.
//
// It imports nothing of ours.
package bodies

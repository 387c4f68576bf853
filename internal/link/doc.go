// Package link defines what a short link is and what a store of links promises.
//
// It holds the [Link] (the whole resource), its [Target] (the part that a
// redirect needs and that caches may hold) and the [Store] contract that every
// link store keeps: SQLite and the in-memory model today, others later. The
// contract's proof is the suite in linktest; a driver without it does not exist.
//
// Read link.go for the resource, target.go for the decision that expiry and
// moderation make about it, store.go for the contract.
//
// The package imports only the standard library, so that everything above may
// import it. It opens nothing, logs nothing and starts no goroutine.
package link

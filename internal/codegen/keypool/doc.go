// Package keypool is the strategy "pool": keys are generated ahead of the creates that use them as codes.
//
// A [Filler] (role keys) keeps a pool in a [Store] filled with the codes of another strategy, which makes each once. A
// [Pool] is the codegen.Generator of a server: it moves whole batches from the unused to the used keys of the store, holds some
// in memory, and takes more before creates need them. Creates go on without fillers as long as the pool lasts, and
// without the store as long as the memory does.
//
// What a server holds in memory when it is killed is lost, and counted as leaked; a server that stops puts it back.
//
// Read store.go for the contract, pool.go and filler.go for both sides. The suite in keypooltest proves drivers; see
// docs/decisions/0075.
package keypool

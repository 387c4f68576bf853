// Package analytics answers questions about clicks: how many, when, where from.
//
// [Reader] is the contract, kept by [Embedded] over roll-ups and Fold's memory
// today. Its proof is analyticstest: scripts of clicks and questions that every
// implementation runs, also compared with a naive recount.
//
// Read reader.go for the contract, steps.go for how time is cut in a time zone,
// embedded.go for how stored and pending counts become one view.
package analytics

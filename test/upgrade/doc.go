// Package upgrade proves that a release can be upgraded from, and taken back.
//
// testdata/VERSION is a data folder that a release left, with what its server answered
// about it. Every later server starts on a copy and must answer the same: each link, its
// statistics and clicks, what visitors meet, the lists, and each key. A folder is made
// once, by the release that it is named after, and then never changed:
//
//	scripts/upgrade-fixture 0.1
//
// TestANewerSchema shows the other direction: what a server does that meets the schema
// of a later release.
package upgrade

// Package search finds links by words, tags, state and clicks, beside the link store
// and behind it: an [Index] learns of a link within seconds, and never decides what
// anybody sees. Its hits are only keys; whoever asks reads each link from the store
// and keeps what [Filter.Matches] still accepts, so that an index that lags, or is
// wrong, can leave a link out but never show one that is deleted or another's.
//
// Read filter.go for what can be asked, words.go for what a word is, index.go for
// what an index promises, and indexer.go for how it is kept up to date without
// costing a create anything. The suite that proves an index is searchtest.
package search

// Package dynamodb keeps links in Amazon DynamoDB, where many processes share them.
//
// A link is an item by domain and code, and nothing else is in its table. A generated create is one
// conditional PutItem; a chosen code, a change and the last click of a bound are a transaction with a
// pending entry of the change log. Lists, expired links, creates and equivalent links come from global
// secondary indexes, which lag behind; nothing that must be exact is decided by one: codes, versions,
// clicks, the change log, chosen codes and FindOrCreate among its callers are items of their own, read
// consistently.
//
// Read links.go for what the store promises, create.go, change.go and read.go for links, dedupe.go for
// equivalent links, list.go and merge.go for walks over indexes, creates.go for the log of creates.
// Below it lie ddb, the client, linkitem, a link's item, tables, changes, the change log, and state,
// what servers share.
package dynamodb

// Package shorten is the write path: everything that makes, changes or removes a
// link goes through its services, whoever asks and however the request arrived: a [Creator]
// creates, an [Editor] changes and deletes, a [Finder] reads. [New] makes the three over one store.
//
// A create is normalise, authorise, rate-limit, allocate a code, one conditional
// insert, announce. Read create.go for that order, repeat.go for idempotency keys, rules.go for
// what a field may hold, slug.go for aliases and reserved words, edit.go for changing and
// deleting, find.go for reading.
//
// The package refuses to know HTTP or JSON: httpapi translates. It imports the
// contracts of link, codegen, ratelimit, auth and weburl, and no backend.
package shorten

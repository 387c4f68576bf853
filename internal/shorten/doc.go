// Package shorten is the write path: everything that makes, changes or removes a
// link goes through a [Creator], whoever asks and however the request arrived.
//
// A create is normalise, authorise, rate-limit, allocate a code, one conditional
// insert, announce. Read creator.go for that order, rules.go for what a field may
// hold, slug.go for aliases and reserved words, manage.go for reading, changing
// and deleting.
//
// The package refuses to know HTTP or JSON: httpapi translates. It imports the
// contracts of link, codegen, ratelimit, auth and weburl, and no backend.
package shorten

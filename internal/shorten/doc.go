// Package shorten is the write path: what a caller may ask of links, the rules of each field,
// and the errors of every service. Each service is in a folder of its own: create, edit, find;
// judge decides about where links lead, and linkservice makes all of them over one store.
//
// A create is normalise, authorise, rate-limit, allocate a code, one conditional insert,
// announce. Read create/create.go for that order, then request.go for what is asked and rules.go
// for what a field may hold.
//
// The packages refuse to know HTTP or JSON: httpapi translates. They import the contracts of
// link, codegen, ratelimit, auth and weburl, and no backend.
package shorten

// Package kernel is the life of one request to the API: an [Operation] is one method of one
// path, a [Call] one request on its way through it.
//
// Read operation.go first: caller, permission, query, body, then the operation itself.
// problem.go is the one table that maps errors to answers, json.go the strict decoder of
// bodies, cursor.go what signs positions of lists, describe.go the words that resources
// describe their operations with. A query parameter that an operation does not declare is
// refused, so that nothing works without being described.
//
// huma's own request pipeline is not used: it parses a body twice to validate it, answers 422
// where this API promises 400, and takes its error type from a package variable. Bodies are
// decoded once, strictly, and checked by the rules of package shorten.
//
// The package knows no resource. Identity is found per request and passed on as an argument.
package kernel

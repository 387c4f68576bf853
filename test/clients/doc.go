// Package clients has six generators make clients of api/openapi.yaml, compiles what they
// make, and lets three of them create, read, change and delete a link. It takes minutes, so
// it does all that when the description is not the one that verified.sha256 names, or in
// make test-faults; go test ./test/clients -update notes what passed.
//
// The versions are pinned: pom.xml and jars.sha256 (openapi-generator), gomod (oapi-codegen),
// package.json (openapi-typescript), and pythonClient in clients_test.go.
package clients

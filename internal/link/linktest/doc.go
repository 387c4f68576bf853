// Package linktest proves link stores. A driver fills a [Harness] and calls [Run];
// what it promises is compared with [Memory], the contract in its plainest form.
//
// Read suite.go for the harness, contract.go for the cases of every method,
// model.go for the comparison with the model over random operations. [WithFaults]
// puts a breakable wire in front of any store, for the tests of its callers too.
package linktest

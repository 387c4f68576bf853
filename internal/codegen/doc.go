// Package codegen makes the codes of new links.
//
// The default strategy leases ranges of ids from a [Leaser] and sends each id
// through a keyed [Permutation] of the code space, so that codes are unique
// without asking anybody and unguessable without the key. [Random] and [Hash] promise
// less: the insert says whether their code is free.
//
// Read codegen.go for the contracts, permutation.go for the arithmetic, range.go,
// snowflake.go, random.go and hash.go for the strategies. The suite in codegentest proves Generators and Leasers.
package codegen

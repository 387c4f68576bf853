// Package client is a module of its own, so that programs need nothing of the server to use
// it. This line is its home: see docs/decisions/0032-separate-module-for-the-go-client.md.
module curt.example/client

go 1.24.0

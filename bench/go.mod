module curt/bench

go 1.26.0

require (
	curt v0.0.0
	github.com/google/go-cmp v0.7.0
	golang.org/x/sys v0.49.0
	pgregory.net/rapid v1.3.0
)

replace curt => ../

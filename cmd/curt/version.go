package main

import (
	"fmt"
	"runtime"
)

type versionCmd struct{}

// Run prints the version in one line.
func (versionCmd) Run(t terminal) error {
	_, err := fmt.Fprintf(t.out, "curt %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

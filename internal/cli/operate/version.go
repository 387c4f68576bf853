package operate

import (
	"fmt"
	"runtime"

	"curt/internal/cli"
	"curt/internal/licenses"
)

// Version is the command "curt version".
type Version struct{}

// Run prints the version in one line.
func (Version) Run(t cli.Terminal, version cli.Version) error {
	_, err := fmt.Fprintf(t.Out, "curt %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// Licenses is the command "curt licenses".
type Licenses struct{}

// Run prints the licence texts.
func (Licenses) Run(t cli.Terminal) error { return licenses.WriteTo(t.Out) }

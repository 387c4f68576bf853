// Command curt is a URL shortener: the server and the command line that talks to
// it. `curt serve` is the composition root's only caller; every other command is
// a client of the HTTP API.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"curt/internal/config"
)

// version is set when the binary is linked.
var version = "unknown"

// cli is the command line; each command has its file.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Config  configCmd  `cmd:"" help:"Show or check the settings of the server."`
	Shorten shortenCmd `cmd:"" help:"Make short links."`
	Stats   statsCmd   `cmd:"" help:"Show the clicks of a link."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// terminal is what a command reads and writes.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], terminal{os.Stdin, os.Stdout, os.Stderr}))
}

// run is main without the process: it returns the exit code, 0 done, 1 failed,
// 2 wrong usage, 78 wrong configuration (EX_CONFIG of sysexits.h).
func run(ctx context.Context, args []string, t terminal) int {
	parser, err := kong.New(&cli{}, kong.Name("curt"), kong.Description("A URL shortener that loses nothing."),
		kong.Writers(t.out, t.err), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t))
	if err != nil {
		return fail(t, err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return misuse(t, err)
	}
	return fail(t, command.Run())
}

// misuse is fail for arguments: a setting with a wrong value is 78, whether it stands
// on the command line or elsewhere.
func misuse(t terminal, err error) int {
	var usage *kong.ParseError
	if errors.As(err, &usage) && takesSettings(usage.Context) {
		if wrong := config.WrongFlag(err, usage.Context.Args); wrong != nil {
			err = wrong
		}
	}
	if code := fail(t, err); code != 1 {
		return code
	}
	return 2
}

// takesSettings reports whether the command that was being read has the flags of
// the server.
func takesSettings(c *kong.Context) bool {
	if c.Selected() == nil {
		return false
	}
	return slices.ContainsFunc(c.Selected().Flags, func(f *kong.Flag) bool { return f.Name == "config" })
}

// fail prints an error, several that are joined as a line each, and returns the exit code that it stands for.
func fail(t terminal, err error) int {
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintf(t.err, "curt: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if errors.As(err, new(*config.Error)) || errors.As(err, new(wrongSettings)) {
		return 78
	}
	return 1
}

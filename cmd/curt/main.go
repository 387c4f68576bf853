// Command curt is a URL shortener: the server and the command line that talks to
// it. `curt serve` is the composition root's only caller; every other command is
// a client of the HTTP API. What it prints and how it ends is in exit.go and sheet.go.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// version is set when the binary is linked.
var version = "unknown"

// cli is the command line; each command has its file.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Health  healthCmd  `cmd:"" help:"Say by the exit code whether the server of these settings wants traffic."`
	Config  configCmd  `cmd:"" help:"Show or check the settings of the server."`
	Shorten shortenCmd `cmd:"" help:"Make short links, also of many lines of standard input."`
	Links   linksCmd   `cmd:"" help:"List, show, change and delete links."`
	Stats   statsCmd   `cmd:"" help:"Show the statistics of a link."`
	Clicks  clicksCmd  `cmd:"" help:"Show the clicks of a link one by one, or compare statistics with them."`
	Keys    keysCmd    `cmd:"" help:"Make, list, revoke and rotate API keys."`
	Ban     banCmd     `cmd:"" help:"Ban links, hosts, keys and networks, and undo that."`
	Journal journalCmd `cmd:"" help:"Read the journal of moderation."`
	Review  reviewCmd  `cmd:"" help:"Look at reported and suspicious links, decide about them, answer appeals."`
	QR      qrCmd      `cmd:"" name:"qr" help:"Draw the QR code of a link."`
	Import  importCmd  `cmd:"" help:"Make links from CSV or JSON Lines, also of other shorteners."`
	Export  exportCmd  `cmd:"" help:"Write all links, or their statistics, as JSON Lines or CSV."`
	Backup  backupCmd  `cmd:"" help:"Copy the data folder while the server works on it."`
	Restore restoreCmd `cmd:"" help:"Put a backup in the place of the data folder."`
	Migrate migrateCmd `cmd:"" help:"Make the topic and the tables that clicks go through Kafka to."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Licenses licensesCmd `cmd:"" help:"Print the licences of curt and of everything that is compiled into it."`

	Doctor     doctorCmd     `cmd:"" help:"Look for what is wrong with an installation, and say what to do."`
	Completion completionCmd `cmd:"" help:"Print a script that lets a shell complete commands."`
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second signal ends the process at once, as soon as anybody sees that it stops
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], terminal{os.Stdin, os.Stdout, os.Stderr}))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, t terminal) int {
	parser, err := kong.New(&cli{}, kong.Name("curt"), kong.Description("A URL shortener that loses nothing."),
		kong.Writers(t.out, t.err), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t))
	if err != nil {
		return fail(t, err)
	}
	if slices.Equal(args, []string{"--version"}) { // which everybody tries, and no help needs to list
		args = []string{"version"}
	}
	for i, text := range args {
		if !utf8.ValidString(text) { // which the parser would replace by another text
			return fail(t, usageError(fmt.Sprintf("argument %d: want text in UTF-8", i+1)))
		}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return fail(t, misuse(err))
	}
	return fail(t, command.Run())
}

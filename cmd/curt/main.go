// Command curt is a URL shortener: the server, and the command line that is its client. This
// package is main and the tree of commands; each command is a type below internal/cli, whose
// method Run is the command.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"curt/internal/cli"
	"curt/internal/cli/codes"
	"curt/internal/cli/fleet"
	"curt/internal/cli/keys"
	"curt/internal/cli/links"
	"curt/internal/cli/moderate"
	"curt/internal/cli/movedata"
	"curt/internal/cli/operate"
)

// version is set when the binary is linked.
var version = "unknown"

// commands is the tree of commands. Its types are in packages below internal/cli.
type commands struct {
	Serve   operate.Serve    `cmd:"" help:"Run the server."`
	Health  operate.Health   `cmd:"" help:"Exit 0 if the server is ready."`
	Config  configTree       `cmd:"" help:"Show or check the server's settings."`
	Shorten links.Shorten    `cmd:"" help:"Create short links, also from lines of standard input."`
	Links   linksTree        `cmd:"" help:"List, show, update and delete links."`
	Alias   aliasTree        `cmd:"" help:"Check aliases, reserve them for 5 minutes, release them."`
	Stats   links.Stats      `cmd:"" help:"Show the statistics of a link."`
	Clicks  clicksTree       `cmd:"" help:"List the clicks of a link, or compare statistics with raw clicks."`
	Keys    keysTree         `cmd:"" help:"Create, list, revoke and rotate API keys."`
	Ban     banTree          `cmd:"" help:"Ban links, hosts, keys and networks, or lift bans."`
	Lists   listsTree        `cmd:"" help:"Refuse aliases, block and allow destinations."`
	Journal journalTree      `cmd:"" help:"Read the moderation journal."`
	Review  reviewTree       `cmd:"" help:"Review reported and suspicious links, decide on them, answer appeals."`
	GeoIP   geoipTree        `cmd:"" name:"geoip" help:"Update the GeoIP database."`
	QR      links.QR         `cmd:"" name:"qr" help:"Generate the QR code of a link."`
	Import  movedata.Import  `cmd:"" help:"Import links from CSV or JSON Lines, also from other URL shorteners."`
	Export  movedata.Export  `cmd:"" help:"Export all links, or their statistics, as JSON Lines or CSV."`
	Backup  movedata.Backup  `cmd:"" help:"Back up the data folder while the server runs."`
	Restore movedata.Restore `cmd:"" help:"Restore a backup of the data folder."`
	Codes   codesTree        `cmd:"" help:"Compare the ways of generating codes."`
	Move    movedata.Move    `cmd:"" help:"Move a data folder to PostgreSQL or DynamoDB, links between them, or a fleet to a folder."`
	Fleet   fleetTree        `cmd:"" help:"Show the state of a fleet."`
	Migrate operate.Migrate  `cmd:"" help:"Create or update PostgreSQL schemas, DynamoDB and ClickHouse tables, and Kafka topics."`
	Version operate.Version  `cmd:"" help:"Print the version."`

	Licenses operate.Licenses `cmd:"" help:"Print the licences of curt and its dependencies."`

	Doctor     operate.Doctor `cmd:"" help:"Diagnose an installation and suggest fixes."`
	Completion cli.Completion `cmd:"" help:"Print a shell completion script."`
}

type codesTree struct {
	Compare codes.Compare `cmd:"" help:"Measure codes per second, look-ups per create, memory and predictability of each value of CURT_CODES, for these settings and the number of links."`
}

type fleetTree struct {
	Status fleet.Status `cmd:"" help:"Show each store and server of a fleet with its version, its lag and its problems. Exit 1 if there are warnings, 2 if there are failures."`
}

type geoipTree struct {
	Update operate.GeoIPUpdate `cmd:"" help:"Download CURT_GEOIP from CURT_GEOIP_URL, check it, and replace the file if it is newer; a running server loads it within a minute."`
}

type configTree struct {
	Print operate.PrintConfig `cmd:"" help:"Print the effective settings and where each is set, as a file for --config."`
	Check operate.CheckConfig `cmd:"" help:"Validate every setting, and test each file, secret and address."`
}

type linksTree struct {
	List    links.List      `cmd:"" help:"List links, newest first."`
	Get     links.Get       `cmd:"" help:"Show a link."`
	Update  links.Update    `cmd:"" help:"Update a link; an empty value clears a field."`
	Disable links.Disable   `cmd:"" help:"Disable links, also all links to one host."`
	Enable  links.Enable    `cmd:"" help:"Enable links."`
	Delete  links.Delete    `cmd:"" help:"Delete links permanently."`
	Safety  moderate.Safety `cmd:"" help:"Show or set the safety of a link."`
	Share   links.Share     `cmd:"" help:"Create a share link to the statistics of a link."`
}

type aliasTree struct {
	Check   links.CheckAlias   `cmd:"" help:"Show whether an alias is free, taken or reserved, and suggest others."`
	Reserve links.ReserveAlias `cmd:"" help:"Reserve an alias for your workspace for 5 minutes."`
	Release links.ReleaseAlias `cmd:"" help:"Release a reserved alias."`
}

type clicksTree struct {
	Show    links.Clicks          `cmd:"" default:"withargs" help:"List the clicks of a link, newest first."`
	Verify  operate.VerifyClicks  `cmd:"" help:"Compare the statistics in ClickHouse with its raw clicks, and those with Kafka."`
	Rebuild operate.RebuildClicks `cmd:"" help:"Rebuild the statistics in ClickHouse from its raw clicks."`
	Replay  operate.ReplayClicks  `cmd:"" help:"Replay clicks missing in ClickHouse from Kafka."`
	Servers operate.ListSenders   `cmd:"" help:"List the servers that may hold clicks, which statistics wait for."`
	Forget  operate.ForgetSender  `cmd:"" help:"Stop waiting for clicks of a server that will not return."`
}

type keysTree struct {
	Create keys.Create `cmd:"" help:"Create an API key and print its secret once."`
	List   keys.List   `cmd:"" help:"List API keys."`
	Revoke keys.Revoke `cmd:"" help:"Revoke an API key permanently."`
	Rotate keys.Rotate `cmd:"" help:"Rotate the secret of an API key and print it once."`
}

type banTree struct {
	Add     moderate.AddBan     `cmd:"" help:"Ban a link, a workspace, a key, a host, a domain or a network."`
	List    moderate.ListBans   `cmd:"" help:"List active bans, newest first."`
	Lift    moderate.LiftBan    `cmd:"" help:"Lift a ban and restore its links."`
	Preview moderate.PreviewBan `cmd:"" help:"Preview the effect of a ban."`
}

type listsTree struct {
	List   moderate.ListLists   `cmd:"" help:"Show the lists, or print the entries of one."`
	Add    moderate.AddLine     `cmd:"" help:"Add an entry to a list, or disable a built-in one."`
	Remove moderate.RemoveLine  `cmd:"" help:"Remove an entry from a list."`
	Import moderate.ImportLines `cmd:"" help:"Add the lines of a file to a list."`
	Export moderate.ExportLines `cmd:"" help:"Print a list as text."`
}

type journalTree struct {
	List    moderate.ListEntries `cmd:"" help:"List journal entries, newest first."`
	Erase   moderate.EraseEntry  `cmd:"" help:"Permanently erase the texts of an entry."`
	Rebuild moderate.Rebuild     `cmd:"" help:"Rebuild the safety of all links from the journal."`
}

type reviewTree struct {
	List   moderate.ListReviews  `cmd:"" help:"List the review queue, open appeals first."`
	Show   moderate.ShowReview   `cmd:"" help:"Show the review of a link."`
	Decide moderate.Decide       `cmd:"" help:"Decide on links, also from lines of standard input."`
	Case   moderate.ShowCase     `cmd:"" help:"Show the case of a refused create."`
	Allow  moderate.AllowCase    `cmd:"" help:"Allow the destination of a refused create."`
	Refuse moderate.RefuseCase   `cmd:"" help:"Refuse the destination of a refused create permanently."`
	Answer moderate.AnswerAppeal `cmd:"" help:"Answer the appeal for a link."`
	Erase  moderate.EraseReports `cmd:"" help:"Erase the reports and appeals of a link."`

	EraseCase moderate.EraseCase `cmd:"" help:"Permanently erase the case of a refused create."`
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second signal ends the process at once
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], cli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, t cli.Terminal) int {
	parser, err := kong.New(&commands{}, kong.Name("curt"), kong.Description("A URL shortener that never loses a link."),
		kong.Writers(t.Out, t.Err), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t, cli.Version(version)))
	if err != nil {
		return cli.Exit(t, err)
	}
	if slices.Equal(args, []string{"--version"}) { // a common guess that the help does not list
		args = []string{"version"}
	}
	if len(args) > 0 && args[0] == "help" { // as is this one, also before a command
		args = append(slices.Clone(args[1:]), "--help")
	}
	for i, text := range args {
		if !utf8.ValidString(text) { // the parser would replace it
			return cli.Exit(t, cli.UsageError(fmt.Sprintf("argument %d: expected text in UTF-8", i+1)))
		}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return cli.Exit(t, cli.Misuse(err))
	}
	if serve, ok := reflect.TypeAssert[*operate.Serve](command.Selected().Target.Addr()); ok {
		// command.Run would hold the parser's tree of all commands, 3 MB, while the server runs.
		return cli.Exit(t, serve.Run(ctx, t, cli.Version(version)))
	}
	return cli.Exit(t, command.Run())
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"curt.example/client"
	"curt/internal/analytics"
	"curt/internal/backend/kafka"
	"curt/internal/config"
	"curt/internal/redirect"
)

// The exit codes; docs/cli.md tells them to people. 69 and 78 are EX_UNAVAILABLE and
// EX_CONFIG of sysexits.h, 130 is what shells make of Ctrl-C.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnavailable = 69
	exitConfig      = 78
	exitInterrupted = 130
)

// usageError is a command line that cannot be meant.
type usageError string

func (e usageError) Error() string { return string(e) }

// saidError has been printed where it happened: only the exit code is left to tell.
type saidError struct{ error }

func (e saidError) Unwrap() error { return e.error }

// errInterrupted ends a command that Ctrl-C stopped.
var errInterrupted = errors.New("interrupted")

// errNotConfirmed ends a command whose question was not answered with yes.
var errNotConfirmed = errors.New("nothing done")

// misuse says what an error of the arguments stands for: a setting with a wrong value
// is wrong configuration, whether it stands on the command line or elsewhere.
func misuse(err error) error {
	var usage *kong.ParseError
	if errors.As(err, &usage) && takesSettings(usage.Context) {
		if wrong := config.WrongFlag(err, usage.Context.Args); wrong != nil {
			return wrong
		}
	}
	if isConfig(err) {
		return err
	}
	text := err.Error()
	if flag, _, ok := strings.Cut(text, ` value but got "EOL"`); ok { // what kong calls the end of the line
		text = flag + " value, and there is none"
	}
	return usageError(text)
}

// takesSettings reports whether the command that was being read has the flags of
// the server.
func takesSettings(c *kong.Context) bool {
	if c.Selected() == nil {
		return false
	}
	return slices.ContainsFunc(c.Selected().Flags, func(f *kong.Flag) bool { return f.Name == "config" })
}

// fail prints an error and returns the exit code that it stands for. Our own errors
// may be several, a line each; those of the server never are.
func fail(t terminal, err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, new(saidError)):
	case errors.Is(err, context.Canceled): // how the call under way ended is of no use to anybody
		t.complain(errInterrupted)
	case errors.As(err, new(*client.Problem)):
		t.complain(err)
	default:
		for line := range strings.Lines(err.Error() + advice(err)) {
			t.line(strings.TrimSuffix(line, "\n"))
		}
	}
	return exitCode(err)
}

func isConfig(err error) bool {
	return errors.As(err, new(*config.Error)) || errors.As(err, new(wrongSettings))
}

func exitCode(err error) int {
	problem, explained := errors.AsType[*client.Problem](err)
	if found, ok := errors.AsType[coded](err); ok {
		return found.code
	}
	switch {
	case errors.As(err, new(usageError)), errors.Is(err, client.ErrText):
		return exitUsage
	case isConfig(err), errors.Is(err, client.ErrRedirect):
		return exitConfig
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, client.ErrNoAnswer), errors.Is(err, errNotReady), errors.Is(err, analytics.ErrUnavailable), errors.Is(err, kafka.ErrSilent), explained && passing(problem.Status):
		return exitUnavailable
	}
	return exitFailed
}

// passing reports whether a server that answers so may answer otherwise later.
func passing(status int) bool {
	return slices.Contains([]int{
		http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusInsufficientStorage,
	}, status)
}

// advice says what to do about an error whose text does not, "" where there is
// nothing to say.
func advice(err error) string {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	if errors.Is(err, client.ErrNoAnswer) {
		return "; is the server running? CURT_SERVER says where"
	}
	if errors.Is(err, client.ErrRedirect) {
		return "; a key follows no redirect: CURT_SERVER must name the server itself"
	}
	problem, explained := errors.AsType[*client.Problem](err)
	switch {
	case !explained:
		return ""
	case problem.Title == redirect.NotFound.Title(): // which the API calls otherwise
		return "; links are followed at this address, and it has no API: CURT_SERVER must name a server with CURT_ROLE=api or all, at its CURT_API_LISTEN where that is set"
	case problem.Status == http.StatusUnauthorized:
		return "; set CURT_API_KEY, or CURT_API_KEY_FILE for a server on this machine"
	case problem.RetryAfter > 0:
		return fmt.Sprintf("; try again in %s", problem.RetryAfter)
	case problem.RequestID != "":
		return "; the server's log has it under request " + problem.RequestID
	}
	return ""
}

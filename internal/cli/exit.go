package cli

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
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/kafka"
	"curt/internal/config"
	"curt/internal/redirect"
)

// The exit codes, documented in docs/cli.md. 69 and 78 are EX_UNAVAILABLE and EX_CONFIG of
// sysexits.h, 130 is the convention of shells for Ctrl-C.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnavailable = 69
	ExitConfig      = 78
	ExitInterrupted = 130
)

// UsageError is an invalid command line.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// reportedError is printed already: only its exit code matters.
type reportedError struct{ error }

func (e reportedError) Unwrap() error { return e.error }

// Reported marks an error as printed.
func Reported(err error) error { return reportedError{err} }

// IsReported reports whether an error is printed already.
func IsReported(err error) bool { return errors.As(err, new(reportedError)) }

// codedError has its own exit code.
type codedError struct {
	error
	code int
}

// WithCode gives an error its exit code.
func WithCode(err error, code int) error { return codedError{err, code} }

// ErrInterrupted ends a command that Ctrl-C stopped.
var ErrInterrupted = errors.New("interrupted")

// ErrNotReady ends a command when the server is not ready or does not respond.
var ErrNotReady = errors.New("not ready")

// errNotConfirmed ends a command whose question was not answered with yes.
var errNotConfirmed = errors.New("nothing done")

// Misuse classifies an error of the arguments: an invalid value of a setting is a
// configuration error, on the command line as elsewhere.
func Misuse(err error) error {
	var usage *kong.ParseError
	if errors.As(err, &usage) && takesSettings(usage.Context) {
		if wrong := config.WrongFlag(err, usage.Context.Args); wrong != nil {
			return wrong
		}
	}
	if errors.As(err, new(*config.Error)) {
		return err
	}
	text := err.Error()
	if flag, _, ok := strings.Cut(text, ` value but got "EOL"`); ok { // kong's name for the end of the line
		text = flag + " value, but none is given"
	}
	if said, value := config.Plain(text); value != "" {
		text = said + ", not " + value
	}
	return UsageError(text)
}

// takesSettings reports whether the parsed command has the flags of the server.
func takesSettings(c *kong.Context) bool {
	if c.Selected() == nil {
		return false
	}
	return slices.ContainsFunc(c.Selected().Flags, func(f *kong.Flag) bool { return f.Name == "config" })
}

// Exit prints an error and returns its exit code. An error of curt may have several
// lines; one of the server has one.
func Exit(t Terminal, err error) int {
	switch {
	case err == nil:
		return ExitDone
	case IsReported(err):
	case errors.Is(err, context.Canceled): // the error of the interrupted call has no use
		t.Complain(ErrInterrupted)
	case errors.As(err, new(*client.Problem)):
		t.Complain(err)
	default:
		for line := range strings.Lines(err.Error() + advice(err)) {
			t.line(strings.TrimSuffix(line, "\n"))
		}
	}
	return exitCode(err)
}

func exitCode(err error) int {
	problem, explained := errors.AsType[*client.Problem](err)
	if found, ok := errors.AsType[codedError](err); ok {
		return found.code
	}
	switch {
	case errors.As(err, new(UsageError)), errors.Is(err, client.ErrText):
		return ExitUsage
	case errors.As(err, new(*config.Error)), errors.Is(err, client.ErrRedirect):
		return ExitConfig
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.Is(err, client.ErrNoAnswer), errors.Is(err, ErrNotReady), errors.Is(err, ddb.ErrAway), errors.Is(err, analytics.ErrUnavailable), errors.Is(err, kafka.ErrSilent), explained && passing(problem.Status):
		return ExitUnavailable
	}
	return ExitFailed
}

// passing reports whether a status is transient: a retry may succeed.
func passing(status int) bool {
	return slices.Contains([]int{
		http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusInsufficientStorage,
	}, status)
}

// advice returns what to do about an error whose text does not say it, or "".
func advice(err error) string {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	if errors.Is(err, client.ErrNoAnswer) {
		return "; is the server running? Set CURT_SERVER"
	}
	if errors.Is(err, client.ErrRedirect) {
		return "; API keys are not sent to redirects: set CURT_SERVER to the server itself"
	}
	problem, explained := errors.AsType[*client.Problem](err)
	switch {
	case !explained:
		return ""
	case problem.Title == redirect.NotFound.Title(): // the API has another title for it
		return "; this address serves links but no API: set CURT_SERVER to a server with CURT_ROLE=api or all, at its CURT_API_LISTEN if set"
	case problem.Status == http.StatusUnauthorized:
		return "; set CURT_API_KEY, or CURT_API_KEY_FILE for a server on this machine"
	case problem.RetryAfter > 0:
		return fmt.Sprintf("; retry in %s", problem.RetryAfter)
	case problem.RequestID != "":
		return "; logged by the server with request_id " + problem.RequestID
	}
	return ""
}

// Tally counts the failures of a command that does the same with many things: each failure
// is printed, and the others are still done. It belongs to one goroutine.
type Tally struct {
	All int // things to do

	t      Terminal
	failed int
	worst  int // the highest exit code, which is the gravest
}

// NewTally counts failures among n things.
func NewTally(t Terminal, n int) *Tally { return &Tally{All: n, t: t} }

// Each calls do with each thing. It stops when no further call can succeed: after Ctrl-C, and
// when the server is unavailable or rejects the key.
func Each[T any](ctx context.Context, y *Tally, things []T, do func(T) error) error {
	for i, thing := range things {
		if ctx.Err() != nil {
			return y.left(ErrInterrupted, len(things)-i)
		}
		err := do(thing)
		switch {
		case err == nil:
		case hopeless(err):
			return y.left(err, len(things)-i)
		default:
			y.fail(err)
		}
	}
	return nil
}

func (y *Tally) fail(err error) {
	y.failed++
	y.worst = max(y.worst, exitCode(err))
	y.t.Complain(err)
}

// left returns err, with how many were not done.
func (y *Tally) left(err error, n int) error {
	if y.All == 1 {
		return err
	}
	return fmt.Errorf("%w; %d of %d not done", err, n, y.All)
}

// End returns the error of the command, printed: the summary, unless there was one thing only.
func (y *Tally) End() error {
	if y.failed == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %d failed", y.failed, y.All)
	if y.All > 1 {
		y.t.Complain(err)
	}
	return Reported(codedError{err, y.worst})
}

// hopeless reports whether the next call of the server would fail the same way.
func hopeless(err error) bool {
	problem, explained := errors.AsType[*client.Problem](err)
	return errors.Is(err, client.ErrNoAnswer) || errors.Is(err, context.Canceled) ||
		explained && (problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden)
}

package pgdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
)

// SQLSTATEs that are looked at one by one (PostgreSQL's manual, appendix A).
const (
	stateDiskFull        = "53100"
	stateEnding          = "57P01" // the server ends, or an operator ended the connection
	stateCrashed         = "57P02" // another process of the server did
	stateCannotConnect   = "57P03"
	stateIdle            = "57P05"
	stateCancelled       = "57014" // statement_timeout, too
	stateLockTimeout     = "55P03"
	stateSerialization   = "40001"
	StateUnique          = "23505"
	stateDeadlock        = "40P01"
	stateReadOnly        = "25006" // a primary that is one no more
	stateUnknownStart    = "08P01" // a pooler refuses a parameter that it does not know
	stateUnknownDatabase = "3D000"
	StateNoRight         = "42501"
	stateNoTable         = "42P01"
)

// StateOf returns the SQLSTATE of an error, "" for what the server did not say.
func StateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// IsData reports an error about the values of a statement, with which nothing happened:
// classes 22 (data exception) and 23 (integrity constraint violation).
func IsData(err error) bool {
	state := StateOf(err)
	return len(state) == 5 && (state[:2] == "22" || state[:2] == "23")
}

// IsRepeatable reports an error with which the whole statement was undone, and that a
// repetition may not meet again.
func IsRepeatable(err error) bool {
	state := StateOf(err)
	return state == stateDeadlock || state == stateSerialization
}

// isLost reports an error with which a connection ended, or could not be made, and that a fresh
// one may not meet. It does not tell whether the statement was run.
func isLost(err error) bool {
	switch state := StateOf(err); state {
	case stateEnding, stateCrashed, stateCannotConnect, stateIdle:
		return true
	case "":
	default:
		return strings.HasPrefix(state, "08") // connection exceptions; what a pooler says, too
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); connecting || pgconn.SafeToRetry(err) {
		return true
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// undone reports that a write did certainly not happen: the server said so, or was never
// asked. What a server says while it goes down is no such word, because it may come after
// the commit.
func undone(err error) bool {
	switch StateOf(err) {
	case "":
		_, connecting := errors.AsType[*pgconn.ConnectError](err)
		return connecting || pgconn.SafeToRetry(err) || errors.Is(err, ErrClosed)
	case stateCannotConnect, stateCancelled, stateLockTimeout, stateSerialization, stateDeadlock, stateReadOnly:
		return true
	default:
		state := StateOf(err)
		return state[:2] == "53" || state[:2] == "42" || IsData(err)
	}
}

// ErrClosed is the answer after Close.
var ErrClosed = fmt.Errorf("closed: %w", link.ErrUnavailable)

// readError gives an error of a read its sentinel: what cannot be asked is unavailable. A
// caller whose context ended gets the cause of that.
func readError(ctx context.Context, err error) error {
	switch {
	case err == nil || HasSentinel(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", link.ErrUnavailable, err)
}

// WriteError gives an error of a write its sentinel: what did not certainly fail may have
// happened.
func WriteError(ctx context.Context, err error) error {
	switch {
	case err == nil || HasSentinel(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case StateOf(err) == stateDiskFull:
		return fmt.Errorf("%w: %w", link.ErrFull, err)
	case IsData(err):
		return fmt.Errorf("%w: %w", link.ErrInvalid, err)
	case undone(err):
		return fmt.Errorf("%w: %w", link.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", link.ErrUncertain, err)
}

// HasSentinel reports an error that has a sentinel already.
func HasSentinel(err error) bool {
	for _, s := range []error{
		link.ErrNotFound, link.ErrExists, link.ErrConflict, link.ErrInvalid, link.ErrUnavailable, link.ErrUncertain,
		auth.ErrNoKey, auth.ErrNoShare, moderation.ErrNotFound, moderation.ErrInvalid,
		moderation.ErrNoCase, moderation.ErrNoAppeal, moderation.ErrAppealed, moderation.ErrAnswered,
	} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

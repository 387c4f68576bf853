package ddb

import (
	"context"
	"errors"
	"fmt"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"curt/internal/link"
)

var (
	// ErrClosed is the error of a call after Close.
	ErrClosed = fmt.Errorf("closed: %w", link.ErrUnavailable)
	// ErrUnfit says that a server cannot work on these tables until an operator has acted.
	ErrUnfit = errors.New("tables unusable")

	// ErrAway says that DynamoDB could not be asked about tables now. It is a link.ErrUnavailable.
	ErrAway error = awayError{}

	errSlow = fmt.Errorf("%w: DynamoDB did not answer in time", link.ErrUnavailable)
)

type awayError struct{}

func (awayError) Error() string { return "DynamoDB does not respond" }

func (awayError) Unwrap() error { return link.ErrUnavailable }

// inProgress is the code of a transaction whose first attempt has not ended.
const inProgress = "TransactionInProgressException"

// notDone reports an error of an attempt that says that its request had no effect: DynamoDB refused
// it, or it was never sent.
func notDone(err error) bool {
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == inProgress {
		return false
	}
	if _, ok := errors.AsType[unsent](err); ok {
		return true
	}
	// The SDK makes one of an attempt without an answer, too, with the status 0.
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.HTTPStatusCode() != 0 {
		return answer.HTTPStatusCode() >= 400 && answer.HTTPStatusCode() < 500
	}
	_, signing := errors.AsType[*v4.SigningError](err)
	return signing
}

// reasonConflict is why a transaction was cancelled that met another one.
const (
	reasonNone      = "None"
	reasonCondition = "ConditionalCheckFailed"
	reasonConflict  = "TransactionConflict"
	reasonThrottled = "ThrottlingError"
	reasonExceeded  = "ProvisionedThroughputExceeded"
)

// passing reports that a request met another one on the same item, or a transaction was throttled: it
// had no effect, and the SDK does not send it again.
func passing(err error) bool {
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return true
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return false
	}
	again := false
	for _, r := range cancelled.CancellationReasons {
		switch code(r) {
		case reasonConflict, reasonThrottled, reasonExceeded:
			again = true
		case reasonNone:
		default:
			return false
		}
	}
	return again
}

func code(r types.CancellationReason) string {
	if r.Code == nil {
		return reasonNone
	}
	return *r.Code
}

// Failed is a condition of a write that did not hold.
type Failed struct {
	At   int  // place in the transaction
	Item Item // that is stored, where the request asked for it; nil = there is none
}

// Conditions returns the conditions that did not hold; ok = false: the error is another one.
func Conditions(err error) (failed []Failed, ok bool) {
	if one, is := errors.AsType[*types.ConditionalCheckFailedException](err); is {
		return []Failed{{Item: one.Item}}, true
	}
	cancelled, is := errors.AsType[*types.TransactionCanceledException](err)
	if !is {
		return nil, false
	}
	for i, r := range cancelled.CancellationReasons {
		if code(r) == reasonCondition {
			failed = append(failed, Failed{i, r.Item})
		}
	}
	return failed, len(failed) > 0
}

// IsAnswer reports an error by which a create was answered.
func IsAnswer(err error) bool {
	return errors.Is(err, link.ErrExists) || errors.Is(err, link.ErrConflict) || errors.Is(err, link.ErrInvalid)
}

// isSentinel reports that an error says all already.
func isSentinel(err error) bool {
	for _, s := range []error{link.ErrNotFound, link.ErrExists, link.ErrConflict, link.ErrInvalid, link.ErrUnavailable, link.ErrUncertain} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// explain makes of a failed call what the contract of links names. outer is the context of the
// caller, inner that with the bound of the call.
func explain(outer, inner context.Context, err error, write, uncertain bool) error {
	if err == nil || isSentinel(err) {
		return err
	}
	if outer.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(outer), err)
	} else if inner.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(inner), err)
	}
	switch {
	case write && uncertain:
		return uncertainError{err}
	case outer.Err() != nil, errors.Is(err, link.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", link.ErrUnavailable, err)
}

// uncertainError is ErrUncertain of a write, and no longer ErrUnavailable, whatever it wraps: callers
// take that for a write that did not happen.
type uncertainError struct{ err error }

func (e uncertainError) Error() string { return link.ErrUncertain.Error() + ": " + e.err.Error() }

func (e uncertainError) Is(target error) bool { return target == link.ErrUncertain }

func (e uncertainError) As(target any) bool { return errors.As(e.err, target) }

// Unwrap returns the cause of the caller's context, if it is one.
func (e uncertainError) Unwrap() error {
	if errors.Is(e.err, link.ErrUnavailable) {
		return nil
	}
	return e.err
}

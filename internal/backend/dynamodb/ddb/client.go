package ddb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

// The bound of one call, whatever DynamoDB does; creates in bulk and walks have manyTimes as long.
const (
	callTime  = 2 * time.Second
	manyTimes = 5
)

// maxConns bounds the connections to DynamoDB. Each carries one request at a time.
const maxConns = 256

// Usage is what a request cost, in units: of writes, and of reads.
type Usage struct {
	Operation     string
	Table         string
	Reads, Writes float64
}

// Config says how a client works; the zero value is usable.
type Config struct {
	// Meter is called with what each request cost. Nil = nobody asks, and DynamoDB is not asked.
	Meter func(Usage)
	// CallTime bounds a call; default 2 s.
	CallTime time.Duration
}

// Client asks DynamoDB. It is safe for many goroutines.
type Client struct {
	Links, State string // tables

	CallTime time.Duration // bounds a call

	api    *dynamodb.Client
	pace   *pace
	meter  func(Usage)
	closed *atomic.Bool
}

// Open returns a client of the tables of an address. Region and credentials that the address has not
// are those of the SDK's default chain. Nothing is asked yet.
func Open(ctx context.Context, at Address, c Config) (*Client, error) {
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = maxConns, maxConns, maxConns
			count(t)
		})),
		awsconfig.WithLogger(logging.Nop{}), // what matters is in errors
	}
	if at.Region != "" {
		options = append(options, awsconfig.WithRegion(at.Region))
	}
	loaded, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if loaded.Region == "" {
		return nil, fmt.Errorf("%w: no region; add ?region= to CURT_LINKS or set AWS_REGION", ErrUnfit)
	}
	paced := &pace{}
	api := dynamodb.NewFromConfig(loaded, func(o *dynamodb.Options) {
		o.Retryer = retryer(paced)
		if at.Endpoint != "" {
			o.BaseEndpoint = aws.String(at.Endpoint)
			o.DisableValidateResponseChecksum = true // DynamoDB Local's are of other bytes
		}
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return s.Finalize.Insert(watch{}, "Retry", middleware.After)
		})
	})
	return &Client{Links: at.Table, State: at.State(), api: api, pace: paced, meter: c.Meter, CallTime: cmp.Or(c.CallTime, callTime), closed: &atomic.Bool{}}, nil
}

// Apart returns a client of the same tables whose requests have turns of their own to be sent again:
// those of other callers do not hold them up. It is closed with c.
func (c *Client) Apart() *Client {
	o := c.api.Options()
	apart := *c
	apart.pace = &pace{}
	o.Retryer = retryer(apart.pace)
	apart.api = dynamodb.New(o)
	return &apart
}

// Bound returns a context that ends with the time of a call, for a part of a longer one that is not to take
// all of it.
func (c *Client) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.CallTime, errSlow)
}

// Manage runs f, which asks about tables or changes them, within the time of a call. An error is ErrUnfit where
// DynamoDB is not to be had with these settings, and ErrAway where it may be later.
func (c *Client) Manage(ctx context.Context, f func(ctx context.Context, api *dynamodb.Client) error) error {
	whole, cancel := context.WithTimeoutCause(ctx, manyTimes*c.CallTime, errSlow)
	defer cancel()
	if _, err := c.api.Options().Credentials.Retrieve(whole); err != nil {
		return fmt.Errorf("%w: no credentials of AWS: %w", ErrUnfit, err)
	}
	within, end := c.Bound(whole)
	defer end()
	err := f(within, c.api)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, ErrUnfit):
		return err
	case Denied(err):
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// API returns the SDK's client, for tables.
func (c *Client) API() *dynamodb.Client { return c.api }

// Close refuses calls from now on.
func (c *Client) Close() { c.closed.Store(true) }

// attempts is what became of the attempts of a call.
type attempts struct {
	uncertain atomic.Bool           // one ended without an answer
	refused   atomic.Pointer[error] // why the last one had no effect
}

type attemptsKey struct{}

// watch notes, below the SDK's retries, that an attempt ended without an answer: the write may have
// happened, whatever a later attempt says. It makes no attempt when the time of the call is over soon.
type watch struct{}

func (watch) ID() string { return "curt attempts" }

func (watch) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	a, ok := ctx.Value(attemptsKey{}).(*attempts)
	if !ok {
		return next.HandleFinalize(ctx, in)
	}
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) < noTimeLeft {
		if before := a.refused.Load(); before != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, final{*before}
		}
	}
	var left sending
	out, metadata, err := next.HandleFinalize(left.trace(ctx), in)
	if err != nil && left.nothing(ctx) {
		err = unsent{err}
	}
	switch {
	case err == nil:
		a.refused.Store(nil)
	case notDone(err):
		a.refused.Store(&err)
	default:
		a.uncertain.Store(true)
	}
	return out, metadata, err
}

// Read runs f, which only reads, within the time of a call.
func (c *Client) Read(ctx context.Context, f func(ctx context.Context) error) error {
	return c.run(ctx, c.CallTime, false, f)
}

// ReadMany is Read for walks.
func (c *Client) ReadMany(ctx context.Context, f func(ctx context.Context) error) error {
	return c.run(ctx, manyTimes*c.CallTime, false, f)
}

// Write runs f, which sends one write at the most that its caller must know the end of, within the
// time of a call. An error that is no sentinel of package link means "may have happened" or wraps the cause
// of ctx. f is called again where it met another write on the same item.
func (c *Client) Write(ctx context.Context, f func(ctx context.Context) error) error {
	return c.run(ctx, c.CallTime, true, f)
}

// WriteMany is Write for many links.
func (c *Client) WriteMany(ctx context.Context, f func(ctx context.Context) error) error {
	return c.run(ctx, manyTimes*c.CallTime, true, f)
}

func (c *Client) run(outer context.Context, limit time.Duration, write bool, f func(ctx context.Context) error) error {
	if err := c.Ready(outer); err != nil {
		return err
	}
	inner, cancel := context.WithTimeoutCause(outer, limit, errSlow)
	defer cancel()
	made := &attempts{}
	inner = context.WithValue(inner, attemptsKey{}, made)
	err := Retry(inner, func() error { return f(inner) })
	return explain(outer, inner, err, write, made.uncertain.Load())
}

// Ready returns why no call can be made.
func (c *Client) Ready(ctx context.Context) error {
	if c.closed.Load() {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// The pause before what met another write is sent again: at random, up to twice as long each time.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = 200 * time.Millisecond
)

// Retry calls f until it meets no other write on the same item.
func Retry(ctx context.Context, f func() error) error {
	for most := firstPause; ; most = min(2*most, mostPause) {
		err := f()
		if err == nil || !passing(err) {
			return err
		}
		pause := time.NewTimer(time.Duration(1 + rand.Int64N(int64(most))))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

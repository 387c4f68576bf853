package ddb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// The SDK sends a request again after a failure that may pass, throttling and lost connections among
// them, as long as the time of the call lasts. The pause doubles from firstBackoff to maxBackoff and is
// shortened at random by up to a half: some eleven attempts in two seconds, fifteen at the most.
const (
	firstBackoff = 25 * time.Millisecond
	maxBackoff   = 300 * time.Millisecond
	maxAttempts  = 100 // beyond what any call has time for
)

// noTimeLeft is how shortly before the end of a call nothing is sent again: the answer would be lost,
// and nobody would know any more that the request was refused.
const noTimeLeft = 250 * time.Millisecond

// repeatEvery bounds what all callers of a client send again: a thousand requests a second. An outage
// adds no more than that to what is sent, however many calls fail.
const repeatEvery = time.Millisecond

// retryer sends again within the bounds above. The SDK's own budget is a bucket of tokens, which a
// few dozen failures empty: calls would end after their first attempt while they have time left.
func retryer(p *pace) aws.Retryer {
	return paced{retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.Backoff, o.RateLimiter = maxAttempts, backoff{}, ratelimit.None
	}), p}
}

// paced takes turns in place of tokens.
type paced struct {
	*retry.Standard

	turns *pace
}

// GetRetryToken waits for a turn. An error, which the SDK adds to that of the request, says that there is none
// before the end of the call.
func (r paced) GetRetryToken(ctx context.Context, _ error) (release func(error) error, err error) {
	return func(error) error { return nil }, r.turns.wait(ctx)
}

type backoff struct{}

// BackoffDelay implements retry.BackoffDelayer.
func (backoff) BackoffDelay(attempt int, _ error) (time.Duration, error) {
	most := maxBackoff
	if doublings := attempt - 1; doublings < 8 {
		most = min(firstBackoff<<max(0, doublings), maxBackoff)
	}
	return most/2 + rand.N(most/2), nil
}

// Pause waits, until ctx ends at the most, before a call that used its time is made again.
func Pause(ctx context.Context) { _ = backoff{}.sleep(ctx, maxAttempts) } // the caller sees why ctx ended

// Denied reports that DynamoDB refused a request for a reason that does not pass by itself.
func Denied(err error) bool {
	answer, ok := errors.AsType[*awshttp.ResponseError](err)
	return ok && answer.HTTPStatusCode()/100 == 4 && !passing(err) && !retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err).Bool()
}

// sleep waits before a request is sent again for what was not done of it.
func (b backoff) sleep(ctx context.Context, attempt int) error {
	delay, _ := b.BackoffDelay(attempt, nil)
	pause := time.NewTimer(delay)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errNoTurn = errors.New("(sent again as long as there was time)")

// pace gives each request that is sent again a turn, every repeatEvery one.
type pace struct {
	mu   sync.Mutex
	next time.Time // of the next turn; guarded by mu
}

func (p *pace) wait(ctx context.Context) error {
	pause, err := p.turn(ctx, time.Now())
	if err != nil || pause <= 0 {
		return err
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNoTurn, context.Cause(ctx))
	}
}

func (p *pace) turn(ctx context.Context, now time.Time) (wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.next
	if at.Before(now) {
		at = now
	}
	if end, bounded := ctx.Deadline(); bounded && end.Sub(at) < noTimeLeft {
		return 0, errNoTurn
	}
	p.next = at.Add(repeatEvery)
	return at.Sub(now), nil
}

package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/background"
	"curt/internal/link"
)

const (
	// maxTries bounds how often one insert is sent while its outcome is unknown.
	maxTries = 3
	// retryPause is the wait before the second try; it doubles.
	retryPause = 10 * time.Millisecond
	// retryWithin is how long after the first try another may begin: a store that is slow to
	// say nothing would be so again, and whoever waits is to hear soon.
	retryWithin = time.Second
)

// retryUncertain repeats a write until its outcome is known. An error that names no refusal
// leaves open whether it happened; the same ID makes it safe to ask again, and the
// caller's code must not be given up before that is known.
func retryUncertain[T any](ctx context.Context, retries prometheus.Counter, what fmt.Stringer, write func() (T, error)) (T, error) {
	pause, began := retryPause, time.Now()
	for try := 1; ; try++ {
		stored, err := write()
		if err == nil || decided(err) {
			return stored, err
		}
		if try == maxTries || time.Since(began) > retryWithin || !background.Sleep(ctx, pause) {
			return stored, fmt.Errorf("store %s: %w: %w", what, link.ErrUncertain, err)
		}
		retries.Inc()
		pause *= 2
	}
}

// decided reports whether the error of a write says that nothing was stored.
func decided(err error) bool {
	return errors.Is(err, link.ErrExists) || errors.Is(err, link.ErrConflict) ||
		errors.Is(err, link.ErrInvalid) || errors.Is(err, link.ErrUnavailable)
}

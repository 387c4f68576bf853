package movedata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/redirect"
)

// errNoJobs is the error for a server of an earlier release.
var errNoJobs = errors.New("this server is of a release that has no jobs: upgrade it, or use the curt of its release")

var errCanceled = errors.New("it was canceled")

// await waits until a job has ended.
func await(ctx context.Context, api *client.Client, id string, progress func(*client.Job)) (j client.Job, err error) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if j, err = api.Jobs.Get(ctx, id); err != nil || j.Ended() {
			return j, err
		}
		progress(&j)
		if err := cli.Sleep(ctx, wait); err != nil {
			return j, err
		}
	}
}

// download passes the result of a job from an offset on to take, which returns how many bytes
// it read, and io.EOF at the end. A broken connection is resumed there.
func download(ctx context.Context, api *client.Client, id string, offset int64, take func(io.Reader) (int64, error)) error {
	for {
		body, err := api.Jobs.Result(ctx, id, offset)
		if err != nil {
			return err
		}
		n, err := take(body)
		_ = body.Close() // only read
		offset += n
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return cli.ErrInterrupted
		case n == 0:
			return fmt.Errorf("fetch the result: %w: %w", client.ErrNoAnswer, err)
		}
	}
}

// gone reports whether the job no longer exists.
func gone(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return ok && p.Status == http.StatusNotFound && p.Type == "/problems/no-such-job"
}

// outdated replaces the error of a server without jobs.
func outdated(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if ok && (p.Status == http.StatusNotFound || p.Status == http.StatusMethodNotAllowed) && p.Title != redirect.NotFound.Title() {
		return errNoJobs
	}
	return err
}

package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Job is long work of a workspace, as the server describes it.
type Job struct {
	ID           string      `json:"id"`
	Kind         string      `json:"kind"` // import or export
	WorkspaceID  string      `json:"workspace_id"`
	CreatedBy    string      `json:"created_by"`
	State        string      `json:"state"` // uploading, queued, running, done, failed or canceled
	Size         *int64      `json:"size"`
	Uploaded     int64       `json:"uploaded"` // bytes of the input
	Options      JobOptions  `json:"options"`
	Progress     JobProgress `json:"progress"`
	Header       []string    `json:"header"`  // how columns were understood
	Ignored      []string    `json:"ignored"` // the other columns
	Result       *JobResult  `json:"result"`  // of a job that has ended
	Error        string      `json:"error"`   // why it failed
	WaitingUntil *time.Time  `json:"waiting_until"`
	CreatedAt    time.Time   `json:"created_at"`
	UpdatedAt    time.Time   `json:"updated_at"`
	ExpiresAt    time.Time   `json:"expires_at"`
}

// Ended reports whether nothing more happens to the job.
func (j *Job) Ended() bool { return j.State == "done" || j.State == "failed" || j.State == "canceled" }

// JobOptions say how a job works. Zero fields are not sent; an export has a Format at most.
type JobOptions struct {
	Format  string            `json:"format,omitempty"`
	Columns map[string]string `json:"columns,omitempty"` // by field of a link
	Domain  string            `json:"domain,omitempty"`
	Tags    []string          `json:"tags,omitempty"`
	DryRun  bool              `json:"dry_run,omitempty"`
}

// JobProgress is how far a job is.
type JobProgress struct {
	Bytes   int64 `json:"bytes"`
	Rows    int64 `json:"rows"`
	Created int64 `json:"created"`
	Skipped int64 `json:"skipped"`
	Failed  int64 `json:"failed"`
}

// JobResult is what a job has left.
type JobResult struct {
	Bytes       int64  `json:"bytes"`
	ContentType string `json:"content_type"`
}

// JobPage is one page of jobs; NextCursor is empty at the end.
type JobPage struct {
	Jobs       []Job  `json:"jobs"`
	NextCursor string `json:"next_cursor"`
}

// MaxJobInput is the most bytes of one SendInput.
const MaxJobInput = 1 << 20

const jobsPath = "/api/v1/jobs"

func jobPath(id string) string { return jobsPath + "/" + url.PathEscape(id) }

// CreateImport creates a job that creates a link of each row of its input, which SendInput
// sends; size is what that will have in bytes, 0 = unknown.
func (c *Jobs) CreateImport(ctx context.Context, size int64, o JobOptions) (Job, error) {
	body := map[string]any{"kind": "import", "options": o}
	if size > 0 {
		body["size"] = size
	}
	return c.create(ctx, body)
}

// CreateExport creates a job that writes the links that the key sees; format is jsonl, csv, or ""
// for jsonl.
func (c *Jobs) CreateExport(ctx context.Context, format string) (Job, error) {
	return c.create(ctx, map[string]any{"kind": "export", "options": JobOptions{Format: format}})
}

func (c *Jobs) create(ctx context.Context, body any) (j Job, err error) {
	err = c.call(ctx, http.MethodPost, jobsPath, nil, body, &j)
	return j, err
}

// Get returns a job.
func (c *Jobs) Get(ctx context.Context, id string) (j Job, err error) {
	err = c.call(ctx, http.MethodGet, jobPath(id), nil, nil, &j)
	return j, err
}

// List returns up to limit jobs (1–100; 0 = the server's choice), newest first, after the cursor.
func (c *Jobs) List(ctx context.Context, cursor string, limit int) (p JobPage, err error) {
	err = c.call(ctx, http.MethodGet, jobsPath, pageQuery(limit, map[string]string{"cursor": cursor}), nil, &p)
	return p, err
}

// SendInput sends up to MaxJobInput bytes of the input of an import, which begin at an offset;
// complete says that they are the last. It may be called again with the same bytes.
func (c *Jobs) SendInput(ctx context.Context, id string, offset int64, data []byte, complete bool) (j Job, err error) {
	q := url.Values{"offset": {strconv.FormatInt(offset, 10)}}
	if complete {
		q.Set("complete", "true")
	}
	err = c.call(ctx, http.MethodPut, jobPath(id)+"/input", q, raw(data), &j)
	return j, err
}

// Result returns the result of a job that has ended, from an offset on. The caller closes it.
func (c *Jobs) Result(ctx context.Context, id string, offset int64) (io.ReadCloser, error) {
	headers := map[string]string{"Accept": "*/*", "Range": fmt.Sprintf("bytes=%d-", offset)}
	req, err := c.request(ctx, http.MethodGet, jobPath(id)+"/result", nil, headers, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w: %w", req.URL.Redacted(), ErrNoAnswer, withoutURL(err))
	}
	switch {
	case resp.StatusCode == http.StatusPartialContent || resp.StatusCode == http.StatusOK && offset == 0:
		return resp.Body, nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable: // it ends there
		return io.NopCloser(bytes.NewReader(nil)), resp.Body.Close()
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w: read it: %w", req.URL.Redacted(), ErrNoAnswer, err)
	}
	return nil, problem(resp, text)
}

// Cancel stops a job; what it created stays.
func (c *Jobs) Cancel(ctx context.Context, id string) (j Job, err error) {
	err = c.call(ctx, http.MethodPost, jobPath(id)+"/cancel", nil, nil, &j)
	return j, err
}

// Delete removes a job that has ended, with its result.
func (c *Jobs) Delete(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, jobPath(id), nil, nil, nil)
}

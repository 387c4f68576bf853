// Package jobs is the API of imports and exports.
package jobs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"curt/internal/auth"
	"curt/internal/exchange"
	"curt/internal/httpapi/kernel"
	"curt/internal/job"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
	"curt/internal/transfer"
)

const (
	jobsPath   = "/api/v1/jobs"
	mediaBytes = "application/octet-stream"
	mediaLines = "application/jsonl"

	// maxJobBody bounds the body that creates a job, in bytes.
	maxJobBody = job.MaxOptions
	// maxJobName bounds what people call a job, in characters.
	maxJobName = 255
)

// Jobs are the operations on imports and exports.
type Jobs struct {
	jobs   job.Store
	links  *linkservice.Service
	queued func() // called when a job may have been queued
	ids    *link.IDs
}

// New returns the operations on jobs.
func New(store job.Store, l *linkservice.Service, queued func()) *Jobs {
	return &Jobs{jobs: store, links: l, queued: queued, ids: link.NewIDs(rand.Reader)}
}

// Job is long work as the API shows it. What a job does not have is null.
type Job struct {
	ID           string      `json:"id" format:"uuid"`
	Kind         string      `json:"kind" enum:"import,export"`
	WorkspaceID  string      `json:"workspace_id"`
	CreatedBy    string      `json:"created_by" doc:"The id of the key that the job has the rights of, or admin."`
	State        string      `json:"state" enum:"uploading,queued,running,done,failed,canceled"`
	Size         *int64      `json:"size" doc:"Bytes of the input, as the one who created the job said."`
	Uploaded     int64       `json:"uploaded" doc:"Bytes of the input that are stored."`
	Options      JobOptions  `json:"options"`
	Progress     JobProgress `json:"progress"`
	Columns      []JobColumn `json:"columns" nullable:"false" doc:"Those of a CSV input, once a row was read; of very many the first."`
	Header       []string    `json:"header" nullable:"false" doc:"How the columns of the input were understood."`
	Ignored      []string    `json:"ignored" nullable:"false" doc:"Names of its other columns."`
	Result       *JobResult  `json:"result" doc:"Of a job that has ended."`
	Error        *string     `json:"error" doc:"Why the job failed."`
	WaitingUntil *time.Time  `json:"waiting_until" doc:"When the job continues, after a limit of the key or a fault."`
	CreatedAt    time.Time   `json:"created_at"`
	UpdatedAt    time.Time   `json:"updated_at"`
	ExpiresAt    time.Time   `json:"expires_at" doc:"The job is removed then, unless it changes before."`
}

// JobOptions say how a job works.
type JobOptions struct {
	Name    string            `json:"name,omitzero" maxLength:"255" doc:"For people, such as the name of the file."`
	Format  string            `json:"format,omitzero" enum:"auto,csv,jsonl" doc:"Of the input, auto without it; of an export csv or jsonl, jsonl without it."`
	Columns map[string]string `json:"columns,omitzero" doc:"By field of a link the column of a CSV input that it is taken from: its name, or # and its number from 1; an empty text takes it from none."`
	Offset  int64             `json:"offset,omitzero" minimum:"0" doc:"Where to start in the input that the job takes over, at the beginning of a line: progress.bytes of the canceled or failed job. Requires input."`
	Domain  string            `json:"domain,omitzero" doc:"Of the links whose row does not say; an export has the links of this domain alone."`
	Tags    []string          `json:"tags,omitzero" nullable:"false" doc:"For all links, in addition to those of each row."`
	DryRun  bool              `json:"dry_run,omitzero" doc:"Creates nothing; created counts the rows that can be."`
	Words   string            `json:"q,omitzero" doc:"Of an export, as tag and state: it has the links that a list with this parameter has."`
	Tag     string            `json:"tag,omitzero"`
	State   string            `json:"state,omitzero"`
}

// JobColumn is a column of the input.
type JobColumn struct {
	Name   string `json:"name" doc:"Empty where the first line is a link already."`
	Field  string `json:"field" doc:"Of a link; empty = none."`
	Sample string `json:"sample" doc:"The cell of the first row."`
}

// JobProgress is how far a job is.
type JobProgress struct {
	Bytes   int64 `json:"bytes" doc:"Of the input."`
	Rows    int64 `json:"rows"`
	Created int64 `json:"created"`
	Skipped int64 `json:"skipped"`
	Failed  int64 `json:"failed"`
}

// JobResult is what a job has left.
type JobResult struct {
	_           struct{} `nullable:"true"` // a job that goes on has none
	Bytes       int64    `json:"bytes"`
	ContentType string   `json:"content_type"`
}

// JobCreate is the body that asks for a job.
type JobCreate struct {
	Kind    string             `json:"kind" enum:"import,export"`
	Size    kernel.Opt[int64]  `json:"size" required:"false" minimum:"0" doc:"Bytes of the input; one that is larger than jobs may be is refused before it is sent, and an input of another size when it is sent."`
	Input   kernel.Opt[string] `json:"input" required:"false" format:"uuid" doc:"The id of an import that has ended, such as a dry run, at most an hour ago. The new job takes its input over and is queued at once; nothing is sent."`
	Options JobOptions         `json:"options" required:"false"`
}

// JobList is a page of jobs.
type JobList struct {
	Jobs       []Job  `json:"jobs" nullable:"false"`
	NextCursor string `json:"next_cursor,omitzero" doc:"Continues the walk; absent at its end."`
}

// Operations is what the API can do with jobs.
func (js *Jobs) Operations(d kernel.Describer) []*kernel.Operation {
	id := &huma.Param{
		Name: "id", In: "path", Required: true, Description: "The id of the job.", Example: "019e830c-2e00-7a51-8c3e-5f0b6d2a9c41",
		Schema: &huma.Schema{Type: huma.TypeString, Format: "uuid"},
	}
	one, most := 1.0, 100.0
	return append([]*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: jobsPath, OperationID: "create-job", Summary: "Create an import or an export",
				Description: "An import takes links:write, and creates a link of each row of the input that is then sent; an export takes links:read, and writes the links that the key sees. " +
					"The job runs with the permissions of its key, also after the client has left, and fails when the key is revoked. At a limit of the key it waits.",
				MaxBodyBytes: maxJobBody, RequestBody: d.Body(JobCreate{}, "application/json"),
				Responses: d.Answers(201, "The job.", Job{}, map[string]*huma.Param{"Location": kernel.Header("The path of the job in this API.")}, 404, 408, 409, 413, 415, 429, 507),
			},
			Action: auth.UseJob, Serve: js.createJob,
			Examples: []kernel.Example{
				{Name: "import", Summary: "Create links from CSV", Body: `{"kind":"import","size":44,"options":{"format":"csv","columns":{"long_url":"Destination"},"tags":["moved"]}}`},
				{Name: "export", Summary: "Write all links", Body: `{"kind":"export","options":{"format":"csv"}}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: jobsPath, OperationID: "list-jobs", Summary: "List jobs, newest first",
				Parameters: []*huma.Param{
					kernel.QueryParam("cursor", "Where to continue: the next_cursor of the previous page.", &huma.Schema{Type: huma.TypeString}),
					kernel.QueryParam("limit", "The most jobs of a page.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
				},
				Responses: d.Answers(200, "A page of jobs.", JobList{}, nil),
			},
			Action: auth.UseJob, Serve: js.listJobs,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: jobsPath + "/{id}", OperationID: "get-job", Summary: "Show how far a job is",
				Parameters: []*huma.Param{id}, Responses: d.Answers(200, "The job.", Job{}, nil, 404),
			},
			Action: auth.UseJob, Serve: js.getJob,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: jobsPath + "/{id}/cancel", OperationID: "cancel-job", Summary: "Stop a job",
				Description: "A job that runs stops within seconds; what it created stays. One that has ended stays as it is.",
				Parameters:  []*huma.Param{id}, Responses: d.Answers(200, "The job.", Job{}, nil, 404, 507),
			},
			Action: auth.UseJob, Serve: js.cancelJob,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: jobsPath + "/{id}", OperationID: "delete-job", Summary: "Remove a job that has ended, with its result",
				Parameters: []*huma.Param{id}, Responses: d.Answers(204, "The job is removed.", nil, nil, 404, 409, 507),
			},
			Action: auth.UseJob, Serve: js.deleteJob,
		},
	}, js.contents(d, id)...)
}

// contents are the operations on the input and the result of a job.
func (js *Jobs) contents(d kernel.Describer, id *huma.Param) []*kernel.Operation {
	zero, largest := 0.0, float64(job.DefaultBounds().Input)
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	result := d.Answers(200, "Of an import JSON Lines with what became of each row (short_code and short_url, error, or skipped), of an export the links. "+
		"With Range a part, 206.", nil, map[string]*huma.Param{"Accept-Ranges": kernel.Header("bytes, except for an import as CSV.")}, 404, 409)
	result["200"].Content = map[string]*huma.MediaType{mediaLines: {Schema: binary}, kernel.MediaCSV: {Schema: binary}}
	result["206"] = &huma.Response{Description: "A part of the result.", Content: result["200"].Content, Headers: map[string]*huma.Param{"Content-Range": kernel.Header("Which part.")}}
	result["416"] = &huma.Response{Description: "The result has no such part."}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPut, Path: jobsPath + "/{id}/input", OperationID: "send-job-input", Summary: "Send a part of the input of an import",
				Description: "Send the parts in order. A repeated part is accepted and changes nothing, so retries are safe; a part after a gap is 409, and detail has the offset to continue at.",
				Parameters: []*huma.Param{
					id,
					kernel.ShownWith(0, kernel.QueryParam("offset", "Where the part begins in the input.", &huma.Schema{Type: huma.TypeInteger, Minimum: &zero, Maximum: &largest, Default: 0})),
					kernel.QueryParam("complete", "true says that the input ends with this part, which may be empty, and queues the job.", &huma.Schema{Type: huma.TypeBoolean, Default: false}),
				},
				MaxBodyBytes: job.MaxChunk, RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaBytes: {Schema: binary}}},
				Responses: d.Answers(200, "The job.", Job{}, nil, 404, 408, 409, 413, 415, 507),
			},
			Action: auth.CreateLink, Serve: js.sendInput,
			Examples: []kernel.Example{{Name: kernel.OnlyExample}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: jobsPath + "/{id}/result", OperationID: "job-result", Summary: "Download what a job has left",
				Description: "A job that was canceled or failed has the result of what it did before.",
				Parameters: []*huma.Param{
					id,
					kernel.QueryParam("format", "csv writes what became of the rows of an import as CSV.", &huma.Schema{Type: huma.TypeString, Enum: []any{"jsonl", "csv"}}),
					kernel.QueryParam("failed", "true leaves out all rows of an import but those that failed; without ranges.", &huma.Schema{Type: huma.TypeBoolean, Default: false}),
				},
				Responses: result,
			},
			Action: auth.UseJob, Serve: js.jobResult,
		},
	}
}

// jobAction is what a job of a kind does for its caller.
func jobAction(k job.Kind) auth.Action {
	if k == job.Export {
		return auth.ReadLink
	}
	return auth.CreateLink
}

// job returns the job that the path names, where the caller may do something to it. Those of other
// workspaces do not exist.
func (js *Jobs) job(c *kernel.Call, may func(k job.Kind) auth.Action) (j job.Job, err error) {
	id, err := link.ParseID(c.R.PathValue("id"))
	if err != nil {
		return j, job.ErrNoJob
	}
	if j, err = js.jobs.Get(c.R.Context(), id); err != nil {
		return j, err
	}
	if err = auth.May(c.Who, may(j.Kind), auth.In(j.Workspace)); errors.Is(err, link.ErrNotFound) {
		err = job.ErrNoJob
	}
	return j, err
}

func (js *Jobs) createJob(c *kernel.Call) error {
	var body JobCreate
	if err := kernel.Decode(c.Body, &body); err != nil {
		return err
	}
	kind, o := job.Kind(body.Kind), body.Options
	if kind != job.Import && kind != job.Export {
		return kernel.BadField("kind", "expected import or export")
	}
	if err := auth.May(c.Who, jobAction(kind), auth.Resource{}); err != nil {
		return err
	}
	if err := js.checkJob(c, kind, &o); err != nil {
		return err
	}
	options, err := json.Marshal(o, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode options: %w", err)
	}
	j := job.Job{Kind: kind, Workspace: c.Who.Workspace, CreatedBy: c.Who.KeyID, Options: options, Size: body.Size.Value, State: job.Uploading}
	if kind == job.Export || body.Input.Given {
		j.State = job.Queued
	}
	if j.Size < 0 || j.State == job.Queued && body.Size.Given {
		return kernel.BadField("size", "expected the bytes of an input that is sent")
	}
	if body.Input.Given {
		if j.Input, err = link.ParseID(body.Input.Value); err != nil || kind == job.Export {
			return kernel.BadField("input", "expected the id of an import")
		}
	}
	if err := js.checkOffset(c, j.Input, o.Offset); err != nil {
		return err
	}
	if j.ID, err = js.ids.New(c.Now); err == nil {
		j, err = js.jobs.Create(c.R.Context(), j)
	}
	if err != nil {
		return err
	}
	js.queued()
	c.W.Header()["Location"] = []string{jobsPath + "/" + j.ID.String()}
	return js.showJob(c, http.StatusCreated, &j)
}

// checkOffset refuses an offset at which no line of the input that a new job takes over begins.
func (js *Jobs) checkOffset(c *kernel.Call, input link.ID, offset int64) error {
	switch {
	case offset == 0:
		return nil
	case input.IsZero():
		return kernel.BadField("offset", "requires input")
	}
	from, err := js.jobs.Get(c.R.Context(), input)
	switch {
	case err != nil:
		return err
	case from.Workspace != c.Who.Workspace:
		return job.ErrNoJob
	case offset == from.Uploaded:
		return nil
	case offset > from.Uploaded:
		return kernel.BadField("offset", fmt.Sprintf("expected at most %d, the bytes of the input", from.Uploaded))
	}
	text, err := js.jobs.Read(c.R.Context(), input, job.Input, offset-1)
	if err == nil && len(text) > 0 && text[0] != '\n' { // without text another job has the input
		err = kernel.BadField("offset", "expected the beginning of a line of the input")
	}
	return err
}

// checkJob refuses options that no row could go with.
func (js *Jobs) checkJob(c *kernel.Call, kind job.Kind, o *JobOptions) error {
	formats := []string{"", transfer.Auto, transfer.CSV, transfer.JSONL}
	if kind == job.Export {
		formats = []string{"", transfer.CSV, transfer.JSONL}
	}
	switch {
	case !slices.Contains(formats, o.Format):
		return kernel.BadField("format", "expected one of"+strings.Join(formats, " "))
	case utf8.RuneCountInString(o.Name) > maxJobName || strings.ContainsFunc(o.Name, unicode.IsControl):
		return kernel.BadField("name", fmt.Sprintf("expected at most %d characters without control characters", maxJobName))
	case kind == job.Export:
		return js.checkExport(c, o)
	case o.Words != "" || o.Tag != "" || o.State != "":
		return kernel.BadField("options", "an import chooses no links")
	case o.Offset < 0:
		return kernel.BadField("offset", "expected a number of bytes")
	case len(o.Columns) > 0 && o.Format == transfer.JSONL:
		return kernel.BadField("columns", transfer.ErrColumns.Error())
	}
	if _, known := js.links.Domain(o.Domain); !known {
		return kernel.BadField("domain", "is not a domain of this service")
	}
	for field := range o.Columns {
		if !slices.Contains(exchange.Columns(), field) {
			return kernel.BadField("columns", kernel.Clip(field)+" is not a field of a link")
		}
	}
	if len(o.Tags) == 0 {
		return nil
	}
	return shorten.CheckFields(c.Now, &shorten.Fields{LongURL: shorten.Value("https://example.com/"), Tags: shorten.Value(o.Tags)})
}

// checkExport refuses options that choose no links. A search that no server could answer is refused
// now, and does not wait as a job.
func (js *Jobs) checkExport(c *kernel.Call, o *JobOptions) error {
	if len(o.Columns) > 0 || len(o.Tags) > 0 || o.DryRun || o.Offset != 0 {
		return kernel.BadField("options", "an export has a format, and what chooses its links")
	}
	filter, err := js.links.Filter(shorten.Question{Words: o.Words, Tag: o.Tag, State: o.State, Domain: o.Domain})
	if err == nil {
		_, err = js.links.Find(c.R.Context(), c.Now, c.Who, filter, link.Page{Limit: 1})
	}
	return err
}

// showJob answers with a job.
func (js *Jobs) showJob(c *kernel.Call, status int, j *job.Job) error {
	shown, err := jobResource(j)
	if err != nil {
		return err
	}
	return c.JSON(status, shown)
}

// jobResource returns a job as the API shows it. It points into j.
func jobResource(j *job.Job) (shown Job, err error) {
	p := &j.Progress
	shown = Job{
		ID: j.ID.String(), Kind: string(j.Kind), WorkspaceID: string(j.Workspace), CreatedBy: j.CreatedBy, State: string(j.State),
		Uploaded: j.Uploaded, Progress: JobProgress{p.Bytes, p.Rows, p.Created, p.Skipped, p.Failed},
		Columns: make([]JobColumn, len(p.Columns)), Header: append([]string{}, p.Header...), Ignored: append([]string{}, p.Ignored...), Error: kernel.Optional(&j.Error),
		WaitingUntil: kernel.Instant(&j.Waits), CreatedAt: j.Created, UpdatedAt: j.Updated, ExpiresAt: j.Expires,
	}
	for i := range p.Columns {
		shown.Columns[i] = JobColumn(p.Columns[i])
	}
	if !j.Waits.IsZero() && p.WaitsUntil.After(j.Waits) {
		shown.WaitingUntil = kernel.Instant(&p.WaitsUntil)
	}
	if j.State == job.Canceling {
		shown.State = string(job.Running)
	}
	if j.Size > 0 {
		shown.Size = &j.Size
	}
	if err := json.Unmarshal(j.Options, &shown.Options); err != nil {
		return shown, fmt.Errorf("read the options of a job: %w", err)
	}
	if j.State.Ended() {
		shown.Result = &JobResult{Bytes: j.Result, ContentType: resultMedia(j.Kind, shown.Options.Format)}
	}
	return shown, nil
}

func resultMedia(k job.Kind, format string) string {
	if k == job.Export && format == transfer.CSV {
		return kernel.MediaCSV
	}
	return mediaLines
}

func (js *Jobs) listJobs(c *kernel.Call) error {
	limit, err := c.Integer("limit")
	if err != nil {
		return err
	}
	workspace, walk := auth.Within(c.Who, ""), []string{"jobs"}
	walk = append(walk, string(workspace))
	var before link.ID
	after, err := c.Unseal(walk)
	if err != nil || after != "" && len(after) != len(before) {
		return kernel.BadField("cursor", "is not a cursor of this list")
	}
	copy(before[:], after)
	jobs, err := js.jobs.List(c.R.Context(), workspace, before, limit+1)
	if err != nil {
		return err
	}
	more := len(jobs) > limit
	jobs = jobs[:min(len(jobs), limit)]
	list := JobList{Jobs: make([]Job, len(jobs))}
	for i := range jobs {
		if list.Jobs[i], err = jobResource(&jobs[i]); err != nil {
			return err
		}
	}
	if more {
		last := jobs[limit-1].ID
		list.NextCursor = c.Seal(walk, string(last[:]))
	}
	return c.JSON(http.StatusOK, list)
}

func (js *Jobs) getJob(c *kernel.Call) error {
	j, err := js.job(c, func(job.Kind) auth.Action { return auth.UseJob })
	if err != nil {
		return err
	}
	return js.showJob(c, http.StatusOK, &j)
}

func (js *Jobs) sendInput(c *kernel.Call) error {
	offset, err := c.Integer("offset")
	if err != nil {
		return err
	}
	complete, err := c.Flag("complete")
	if err != nil {
		return err
	}
	j, err := js.job(c, jobAction)
	if err == nil && j.Kind != job.Import {
		err = job.ErrState
	}
	if err == nil {
		j, err = js.jobs.Append(c.R.Context(), j.ID, int64(offset), c.Body, complete)
	}
	if err != nil {
		return err
	}
	if complete {
		js.queued()
	}
	return js.showJob(c, http.StatusOK, &j)
}

func (js *Jobs) cancelJob(c *kernel.Call) error {
	j, err := js.job(c, jobAction)
	if err == nil {
		j, err = js.jobs.Cancel(c.R.Context(), j.ID)
	}
	if err != nil {
		return err
	}
	return js.showJob(c, http.StatusOK, &j)
}

func (js *Jobs) deleteJob(c *kernel.Call) error {
	j, err := js.job(c, jobAction)
	if err == nil {
		err = js.jobs.Delete(c.R.Context(), j.ID)
	}
	if err != nil {
		return err
	}
	kernel.CommonHeaders(c.W.Header())
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}

func (js *Jobs) jobResult(c *kernel.Call) error {
	j, err := js.job(c, func(k job.Kind) auth.Action {
		if k == job.Import { // its links are in the answer, and nothing else of others
			return auth.UseJob
		}
		return auth.ReadLink
	})
	if err == nil && !j.State.Ended() {
		err = job.ErrState
	}
	if err != nil {
		return err
	}
	shown, err := jobResource(&j)
	if err != nil {
		return err
	}
	failed, err := c.Flag("failed")
	if err != nil {
		return err
	}
	format := c.Query.Get("format")
	if own := map[string]string{kernel.MediaCSV: transfer.CSV, mediaLines: transfer.JSONL}[shown.Result.ContentType]; format == own {
		format = ""
	}
	switch {
	case failed && j.Kind != job.Import:
		return kernel.BadField("failed", "is for imports")
	case format != "" && (format != transfer.CSV || j.Kind != job.Import):
		return kernel.BadField("format", "the result is "+shown.Result.ContentType)
	}
	from := slowReader{job.NewReader(c.R.Context(), js.jobs, j.ID, job.Result, 0, j.Result), http.NewResponseController(c.W)}
	h := c.W.Header()
	h["Content-Type"] = []string{shown.Result.ContentType}
	kernel.CommonHeaders(h)
	if format == "" && !failed {
		h["Etag"] = []string{strconv.Quote(j.ID.String())} // of a result that changes no more
		byteRanges(c.R.Header, j.Result)
		http.ServeContent(c.W, c.R, "", time.Time{}, from)
		return nil
	}
	if err := js.sendOutcomes(c, from, format, failed); err != nil {
		panic(http.ErrAbortHandler) // what was sent is no whole file
	}
	return nil
}

// byteRanges prepares a Range for http.ServeContent, which refuses units that it does not know
// (RFC 9110, section 14.2: to be ignored) and serves a suffix of no bytes (14.1.2: not satisfiable).
func byteRanges(h http.Header, size int64) {
	unit, ranges, _ := strings.Cut(h.Get("Range"), "=")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		h.Del("Range")
		return
	}
	var parts []string
	for part := range strings.SplitSeq(ranges, ",") {
		if suffix, is := strings.CutPrefix(strings.TrimSpace(part), "-"); !is || strings.Trim(suffix, "0") != "" || suffix == "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		parts = []string{strconv.FormatInt(size, 10) + "-"}
	}
	h.Set("Range", "bytes="+strings.Join(parts, ","))
}

// sendOutcomes answers with what became of the rows of an import, or of those that failed.
func (js *Jobs) sendOutcomes(c *kernel.Call, from io.Reader, format string, failed bool) (err error) {
	if format == transfer.CSV {
		c.W.Header()["Content-Type"] = []string{kernel.MediaCSV + "; charset=utf-8; header=present"}
		c.W.WriteHeader(http.StatusOK)
		if _, err = io.WriteString(c.W, transfer.OutcomeColumns); err == nil {
			err = transfer.WriteCSV(c.W, from, failed)
		}
		return err
	}
	c.W.WriteHeader(http.StatusOK)
	return transfer.WriteFailures(c.W, from)
}

// slowReader gives the client of a download time for each chunk, however many there are.
type slowReader struct {
	*job.Reader

	client *http.ResponseController
}

func (s slowReader) Read(p []byte) (int, error) {
	_ = s.client.SetWriteDeadline(time.Now().Add(time.Minute)) // a writer without deadlines is a test's
	return s.Reader.Read(p)
}

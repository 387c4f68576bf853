// Package coldjobs keeps jobs, with the chunks of their inputs and results, in tables beside the
// accounts of package coldsql.
package coldjobs

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/job"
	"curt/internal/joblease"
	"curt/internal/link"
)

// Jobs implements job.Store. Its time is the database's.
type Jobs struct {
	db     coldsql.DB
	bounds job.Bounds
}

var _ job.Store = Jobs{}

// New returns the jobs in a database of accounts.
func New(db coldsql.DB, b job.Bounds) Jobs { return Jobs{db, b} }

const (
	jobColumns = `id, workspace, kind, created_by, options, size, uploaded, state, progress, error, result, stored, input, fence, until, holder, created, updated, expires, {now}`

	sqlJob       = `SELECT ` + jobColumns + ` FROM jobs WHERE id = $1 AND expires > {now}`
	sqlLockedJob = sqlJob + ` {lock}`
	sqlJobs      = `SELECT ` + jobColumns + ` FROM jobs WHERE workspace = $1 AND id < $2 AND expires > {now} ORDER BY id DESC LIMIT $3`
	sqlAllJobs   = `SELECT ` + jobColumns + ` FROM jobs WHERE id < $1 AND expires > {now} ORDER BY id DESC LIMIT $2`
	sqlInsertJob = `INSERT INTO jobs (id, workspace, kind, created_by, options, size, uploaded, state, progress, error, result, stored, input, holder, fence, until, created, updated, expires)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, $12, '', 0, {now}, {now}, {now}, {now} + $13)`
	sqlInputSize = `SELECT CAST(coalesce(sum(length(data)), 0) AS bigint) FROM job_chunks WHERE job = $1 AND part = 1`
	sqlGiveInput = `UPDATE jobs SET input = NULL, stored = stored - $2 WHERE id = $1`
	sqlChangeJob = `UPDATE jobs SET uploaded = $2, state = $3, progress = $4, error = $5, result = $6, stored = $7, holder = $8, fence = $9,
	until = CASE WHEN CAST($10 AS bigint) < 0 THEN until ELSE {now} + $10 END, updated = {now}, expires = {now} + $11 WHERE id = $1`
	sqlCountJobs = `SELECT CAST(count(*) AS bigint), CAST(coalesce(sum(CASE WHEN state IN ('done', 'failed', 'canceled') THEN 0 ELSE 1 END), 0) AS bigint)
	FROM jobs WHERE workspace = $1`
	sqlRenewClaim   = `UPDATE jobs SET until = {now} + $4 WHERE id = $1 AND holder = $2 AND fence = $3`
	sqlReleaseClaim = `UPDATE jobs SET holder = '', until = {now} WHERE id = $1 AND holder = $2 AND fence = $3`

	// Creates of jobs come one after the other, so that their bounds hold: the row of a lease that
	// nobody acquires is locked.
	sqlLockJobs = `INSERT INTO job_leases AS old (name, holder, fence, until) VALUES (' jobs', '', 0, 0)
	ON CONFLICT (name) DO UPDATE SET fence = old.fence`

	// These read every job that is unfinished, or all of them: as many as the bounds let be.
	sqlWaitingJob = `SELECT id FROM jobs WHERE state IN ('queued', 'running', 'canceling') AND (until <= {now} OR holder = $1) AND expires > {now}
	ORDER BY until, id LIMIT 1`
	sqlClaimedJob = sqlWaitingJob + ` {skip locked}`
	sqlStoredJobs = `SELECT CAST(coalesce(sum(stored), 0) AS bigint), CAST(coalesce(sum(CASE WHEN workspace = $1 THEN stored ELSE 0 END), 0) AS bigint) FROM jobs`
	sqlSweptJob   = `SELECT id, input, CASE WHEN expires <= {now} THEN 1 ELSE 0 END FROM jobs
	WHERE expires <= {now} OR state IN ('done', 'failed', 'canceled') AND uploaded > 0 AND updated <= {now} - $1
	AND EXISTS (SELECT 1 FROM job_chunks WHERE job = jobs.input AND part = 1) LIMIT 1`

	sqlInsertChunk = `INSERT INTO job_chunks (job, part, start, data) VALUES ($1, $2, $3, $4)`
	sqlChunk       = `SELECT start, data FROM job_chunks WHERE job = $1 AND part = $2 AND start <= $3 ORDER BY start DESC LIMIT 1`
	sqlSweptChunks = `SELECT start, CAST(length(data) AS bigint) FROM job_chunks WHERE job = $1 AND part = $2 LIMIT $3`
	sqlDropChunk   = `DELETE FROM job_chunks WHERE job = $1 AND part = $2 AND start = $3`
	sqlUnstore     = `UPDATE jobs SET stored = stored - $2 WHERE id = $1`
	sqlDropJob     = `DELETE FROM jobs WHERE id = $1 AND expires <= {now}`
	sqlExpireJob   = `UPDATE jobs SET expires = 0, fence = fence + 1 WHERE id = $1`

	// sweptChunks are removed in one transaction, so that other writers wait for no more than them.
	sweptChunks = 8
)

// jobRow is a job with what callers do not see.
type jobRow struct {
	job.Job

	stored int64
	input  link.ID // the job under which the chunks of its input are; zero = another job has them
	holder string
	wait   int64     // milliseconds from now until others may claim it; -1 = as it is
	now    time.Time // of the database
}

func readJob(r *coldsql.Row) (j jobRow) {
	j.ID, j.Workspace, j.Kind, j.CreatedBy = r.ID(), link.WorkspaceID(r.Text()), job.Kind(r.Text()), r.Text()
	j.Options, j.Size, j.Uploaded, j.State = []byte(r.Text()), r.Int(), r.Int(), job.State(r.Text())
	r.Check(json.Unmarshal([]byte(r.Text()), &j.Progress) == nil)
	j.Error, j.Result, j.stored = r.Text(), r.Int(), r.Int()
	r.Fill(j.input[:], true)
	j.Fence = uint64(r.Int())
	until := r.Time()
	j.holder, j.Created, j.Updated, j.Expires, j.wait = r.Text(), r.Time(), r.Time(), r.Time(), -1
	if j.now = r.Time(); j.State == job.Running && j.holder == "" && j.now.Before(until) {
		j.Waits = until
	}
	return j
}

// chunks returns the job under which the chunks of a part are.
func (j *jobRow) chunks(p job.Part) link.ID {
	if p == job.Input {
		return j.input
	}
	return j.ID
}

// findJob returns a job; job.ErrNoJob.
func findJob(t coldsql.Tx, query string, args ...any) (j jobRow, err error) {
	found, err := coldsql.One(t, query, func(r *coldsql.Row) { j = readJob(r) }, args...)
	if err == nil && !found {
		err = job.ErrNoJob
	}
	return j, err
}

// change runs f on a job and stores what it made of it, in one transaction.
func (s Jobs) change(ctx context.Context, what string, id link.ID, f func(t coldsql.Tx, j *jobRow) error) (after job.Job, err error) {
	err = s.db.Write(ctx, 1, func(t coldsql.Tx) error {
		after, err = s.changeIn(t, id, f)
		return err
	})
	if errors.Is(err, errUnchanged) {
		return after, nil
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("%s the job %s: %w", what, id, err)
	}
	return after, nil
}

// changeIn is change in a transaction of the caller.
func (s Jobs) changeIn(t coldsql.Tx, id link.ID, f func(t coldsql.Tx, j *jobRow) error) (job.Job, error) {
	j, err := findJob(t, sqlLockedJob, id)
	if err != nil {
		return job.Job{}, err
	}
	if err := f(t, &j); err != nil {
		return j.Job, err
	}
	progress, err := json.Marshal(&j.Progress)
	if err != nil || len(progress) > job.MaxProgress {
		return job.Job{}, errors.Join(link.ErrInvalid, err)
	}
	if _, err = t.Exec(sqlChangeJob, id, j.Uploaded, string(j.State), coldsql.Text(progress), coldsql.Text(j.Error), j.Result, j.stored, j.holder, int64(j.Fence), j.wait,
		s.bounds.Retention.Milliseconds()+max(0, j.wait)); err != nil {
		return job.Job{}, err
	}
	j, err = findJob(t, sqlJob, id)
	return j.Job, err
}

// errUnchanged leaves a job as it is.
var errUnchanged = errors.New("there is nothing to change")

// Create implements job.Store.
func (s Jobs) Create(ctx context.Context, j job.Job) (created job.Job, err error) {
	if err := s.bounds.Check(&j); err != nil {
		return job.Job{}, err
	}
	err = s.db.Write(ctx, 1, func(t coldsql.Tx) error {
		if _, err := t.Exec(sqlLockJobs); err != nil {
			return err
		}
		there, err := findJob(t, sqlJob, j.ID)
		if created = there.Job; !errors.Is(err, job.ErrNoJob) {
			return err
		}
		var all, unfinished int64
		if _, err := coldsql.One(t, sqlCountJobs, func(r *coldsql.Row) { all, unfinished = r.Int(), r.Int() }, string(j.Workspace)); err != nil {
			return err
		}
		if all >= int64(s.bounds.Jobs) || unfinished >= int64(s.bounds.Unfinished) {
			return job.ErrTooMany
		}
		from := jobRow{input: j.ID}
		from.Size = j.Size
		if !j.Input.IsZero() {
			if from, err = s.takeInput(t, &j); err != nil {
				return err
			}
		}
		if _, err := t.Exec(sqlInsertJob, j.ID, string(j.Workspace), string(j.Kind), j.CreatedBy, coldsql.Text(j.Options), from.Size, from.Uploaded, string(j.State), coldsql.Text("{}"), coldsql.Text(""),
			from.stored, from.input, s.bounds.Retention.Milliseconds()); err != nil {
			return err
		}
		there, err = findJob(t, sqlJob, j.ID)
		created = there.Job
		return err
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("create a job: %w", err)
	}
	return created, nil
}

// takeInput returns the input that a new job takes over: its size, and where its chunks are, which
// stay there.
func (s Jobs) takeInput(t coldsql.Tx, j *job.Job) (from jobRow, err error) {
	if from, err = findJob(t, sqlLockedJob, j.Input); err != nil {
		return from, err
	}
	if err := s.bounds.Take(&from.Job, j.Workspace, from.now); err != nil {
		return from, err
	}
	if from.input.IsZero() {
		return from, job.ErrState
	}
	if _, err := coldsql.One(t, sqlInputSize, func(r *coldsql.Row) { from.stored = r.Int() }, from.input); err != nil {
		return from, err
	}
	_, err = t.Exec(sqlGiveInput, from.ID, from.stored)
	return from, err
}

// Get implements job.Store.
func (s Jobs) Get(ctx context.Context, id link.ID) (job.Job, error) {
	var j jobRow
	err := s.db.Read(ctx, func(t coldsql.Tx) (err error) {
		j, err = findJob(t, sqlJob, id)
		return err
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("get the job %s: %w", id, err)
	}
	return j.Job, nil
}

// List implements job.Store.
func (s Jobs) List(ctx context.Context, w link.WorkspaceID, before link.ID, n int) (list []job.Job, err error) {
	if before.IsZero() {
		copy(before[:], bytes.Repeat([]byte{0xff}, len(before)))
	}
	query, args := sqlJobs, []any{string(w), before, int64(n)}
	if w == "" {
		query, args = sqlAllJobs, args[1:]
	}
	err = s.db.ReadMany(ctx, func(t coldsql.Tx) error {
		list = nil
		return coldsql.Each(t, query, func(r *coldsql.Row) { list = append(list, readJob(r).Job) }, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return list, nil
}

// chunk is a piece of a part, compressed.
type chunk struct {
	bytes  int
	packed []byte
}

// pack compresses data in chunks, before a transaction that others would wait for.
func pack(data []byte) (all []chunk, err error) {
	for len(data) > 0 {
		n := min(len(data), job.MaxChunk)
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestSpeed)
		if err == nil {
			_, err = w.Write(data[:n])
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
		all, data = append(all, chunk{n, b.Bytes()}), data[n:]
	}
	return all, nil
}

func unpack(packed []byte) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), job.MaxChunk))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", coldsql.ErrDamaged, err)
	}
	return data, nil
}

// store adds chunks to a part that ends at start, where there is room.
func (s Jobs) store(t coldsql.Tx, j *jobRow, part job.Part, start int64, chunks []chunk) error {
	if len(chunks) == 0 {
		return nil
	}
	var all, own int64
	if _, err := coldsql.One(t, sqlStoredJobs, func(r *coldsql.Row) { all, own = r.Int(), r.Int() }, string(j.Workspace)); err != nil {
		return err
	}
	if all >= s.bounds.Stored || own >= s.bounds.WorkspaceStored {
		return link.ErrFull
	}
	var rows [][]any
	for _, c := range chunks {
		rows = append(rows, []any{j.chunks(part), int64(part), start, c.packed})
		j.stored += int64(len(c.packed))
		start += int64(c.bytes)
	}
	return t.ExecMany(sqlInsertChunk, rows)
}

// Append implements job.Store.
func (s Jobs) Append(ctx context.Context, id link.ID, offset int64, data []byte, complete bool) (job.Job, error) {
	chunks, err := pack(data)
	if err != nil {
		return job.Job{}, err
	}
	return s.change(ctx, "append to", id, func(t coldsql.Tx, j *jobRow) error {
		more, err := s.bounds.Next(&j.Job, offset, data, complete)
		if err != nil {
			return err
		}
		queues := complete && j.State == job.Uploading
		if len(more) == 0 && !queues {
			return errUnchanged
		}
		if len(more) < len(data) { // the beginning was sent before
			if chunks, err = pack(more); err != nil {
				return err
			}
		}
		if err := s.store(t, j, job.Input, j.Uploaded, chunks); err != nil {
			return err
		}
		j.Uploaded += int64(len(more))
		if queues {
			j.State, j.wait = job.Queued, 0
		}
		return nil
	})
}

// Read implements job.Store.
func (s Jobs) Read(ctx context.Context, id link.ID, part job.Part, offset int64) (data []byte, err error) {
	var packed []byte
	var start int64
	err = s.db.Read(ctx, func(t coldsql.Tx) error {
		j, err := findJob(t, sqlJob, id)
		if err != nil {
			return err
		}
		packed = nil
		_, err = coldsql.One(t, sqlChunk, func(r *coldsql.Row) { start, packed = r.Int(), []byte(r.Text()) }, j.chunks(part), int64(part), offset)
		return err
	})
	if err == nil && packed != nil {
		data, err = unpack(packed)
	}
	if err != nil {
		return nil, fmt.Errorf("read the job %s: %w", id, err)
	}
	return data[min(offset-start, int64(len(data))):], nil
}

// Cancel implements job.Store.
func (s Jobs) Cancel(ctx context.Context, id link.ID) (job.Job, error) {
	return s.change(ctx, "cancel", id, func(_ coldsql.Tx, j *jobRow) error {
		switch {
		case j.State.Ended() || j.State == job.Canceling:
			return errUnchanged
		case j.holder != "":
			j.State = job.Canceling
		default:
			j.State, j.Waits = job.Canceled, time.Time{}
		}
		return nil
	})
}

// Delete implements job.Store.
func (s Jobs) Delete(ctx context.Context, id link.ID) error {
	err := s.db.Write(ctx, 1, func(t coldsql.Tx) error {
		j, err := findJob(t, sqlLockedJob, id)
		if err == nil && !j.State.Ended() {
			err = job.ErrState
		}
		if err == nil {
			_, err = t.Exec(sqlExpireJob, id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete the job %s: %w", id, err)
	}
	return nil
}

// Claim implements job.Store. A transaction is begun only where there is something to claim.
func (s Jobs) Claim(ctx context.Context, holder string, ttl time.Duration) (j job.Job, err error) {
	waiting := func(t coldsql.Tx, query string) (id link.ID, err error) {
		found, err := coldsql.One(t, query, func(r *coldsql.Row) { id = r.ID() }, holder)
		if err == nil && !found {
			err = job.ErrNoJob
		}
		return id, err
	}
	err = s.db.Read(ctx, func(t coldsql.Tx) error {
		_, err := waiting(t, sqlWaitingJob)
		return err
	})
	if err == nil {
		err = s.db.Write(ctx, 1, func(t coldsql.Tx) error {
			id, err := waiting(t, sqlClaimedJob)
			if err != nil {
				return err
			}
			j, err = s.changeIn(t, id, func(_ coldsql.Tx, j *jobRow) error {
				if j.State == job.Queued {
					j.State = job.Running
				}
				j.holder, j.wait = holder, ttl.Milliseconds()
				j.Fence++
				return nil
			})
			return err
		})
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("claim a job: %w", err)
	}
	return j, nil
}

// Renew implements job.Store.
func (s Jobs) Renew(ctx context.Context, l joblease.Lease, ttl time.Duration) error {
	kept, err := s.claimed(ctx, l, sqlRenewClaim, ttl.Milliseconds())
	if err == nil && !kept {
		err = joblease.ErrLost
	}
	return err
}

// Release implements job.Store.
func (s Jobs) Release(ctx context.Context, l joblease.Lease) error {
	_, err := s.claimed(ctx, l, sqlReleaseClaim)
	return err
}

// claimed runs a statement on the job of a claim, and reports whether it is the last one.
func (s Jobs) claimed(ctx context.Context, l joblease.Lease, statement string, args ...any) (last bool, err error) {
	id, err := link.ParseID(l.Name)
	if err != nil {
		return false, err
	}
	err = s.db.Change(ctx, 1, func(t coldsql.Tx) error {
		n, err := t.Exec(statement, append([]any{id, l.Holder, int64(l.Fence)}, args...)...)
		last = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("renew or release the job %s: %w", l.Name, err)
	}
	return last, nil
}

// Save implements job.Store.
func (s Jobs) Save(ctx context.Context, l joblease.Lease, step job.Step) (job.Job, error) {
	id, err := link.ParseID(l.Name)
	if err != nil {
		return job.Job{}, err
	}
	chunks, err := pack(step.Result)
	if err != nil {
		return job.Job{}, err
	}
	j, err := s.change(ctx, "save", id, func(t coldsql.Tx, j *jobRow) error {
		if j.holder != l.Holder || j.Fence != l.Fence || j.State.Ended() {
			return joblease.ErrLost
		}
		if j.Result+int64(len(step.Result)) > s.bounds.Result {
			return job.ErrTooBig
		}
		if err := s.store(t, j, job.Result, j.Result, chunks); err != nil {
			return err
		}
		j.Result += int64(len(step.Result))
		j.Progress, j.Error, j.State = step.Progress, step.Error, cmp.Or(step.State, j.State)
		if step.Release || step.State != "" {
			j.holder, j.wait = "", step.Wait.Milliseconds()
		}
		return nil
	})
	if errors.Is(err, job.ErrNoJob) {
		err = fmt.Errorf("%w: %w", joblease.ErrLost, err)
	}
	return j, err
}

// Sweep implements job.Store.
func (s Jobs) Sweep(ctx context.Context) (more bool, err error) {
	var id, input link.ID
	expired := false
	look := func(t coldsql.Tx) (err error) {
		more, err = coldsql.One(t, sqlSweptJob, func(r *coldsql.Row) {
			id = r.ID()
			if !r.Fill(input[:], true) {
				input = link.ID{}
			}
			expired = r.Int() == 1
		}, s.bounds.RetainInput.Milliseconds())
		return err
	}
	if err := s.db.Read(ctx, look); err != nil || !more {
		return false, err
	}
	err = s.db.Write(ctx, sweptChunks, func(t coldsql.Tx) error {
		if err := look(t); err != nil || !more {
			return err
		}
		size, full, err := dropChunks(t, input, job.Input)
		if err == nil && expired && !full {
			var rest int64
			rest, full, err = dropChunks(t, id, job.Result)
			size += rest
		}
		switch {
		case err != nil:
			return err
		case full || !expired:
			_, err = t.Exec(sqlUnstore, id, size)
		default:
			_, err = t.Exec(sqlDropJob, id)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("remove expired jobs: %w", err)
	}
	return more, nil
}

// dropChunks removes chunks of a part; full = there may be more.
func dropChunks(t coldsql.Tx, id link.ID, p job.Part) (size int64, full bool, err error) {
	var drop [][]any
	if err := coldsql.Each(t, sqlSweptChunks, func(r *coldsql.Row) {
		drop = append(drop, []any{id, int64(p), r.Int()})
		size += r.Int()
	}, id, int64(p), int64(sweptChunks)); err != nil {
		return 0, false, err
	}
	return size, len(drop) == sweptChunks, t.ExecMany(sqlDropChunk, drop)
}

// Statements are those of requests, by name, for tests of their plans: each must find what it looks
// for by an index.
func Statements(d *coldsql.Dialect) map[string]string {
	return d.SQLs(map[string]string{
		"job": sqlJob, "locked job": sqlLockedJob, "jobs": sqlJobs, "all jobs": sqlAllJobs, "count jobs": sqlCountJobs,
		"insert job": sqlInsertJob, "change job": sqlChangeJob, "renew claim": sqlRenewClaim, "release claim": sqlReleaseClaim,
		"lock jobs": sqlLockJobs, "insert chunk": sqlInsertChunk, "chunk": sqlChunk, "swept chunks": sqlSweptChunks, "drop chunk": sqlDropChunk,
		"unstore": sqlUnstore, "input size": sqlInputSize, "give input": sqlGiveInput, "drop job": sqlDropJob, "expire job": sqlExpireJob,
	})
}

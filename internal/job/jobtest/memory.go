package jobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/job"
	"curt/internal/joblease"
	"curt/internal/link"
)

// Memory is the contract in its plainest form, without durability: the double of tests.
type Memory struct {
	Now    func() time.Time
	bounds job.Bounds

	mu   sync.Mutex
	jobs map[link.ID]*held // guarded by mu
}

type held struct {
	job    job.Job
	holder string
	until  time.Time // before then nobody else claims it
	parts  map[job.Part][]byte
}

var _ job.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(b job.Bounds) *Memory {
	return &Memory{Now: time.Now, bounds: b, jobs: map[link.ID]*held{}}
}

// input returns the input of a job, unless another one has it.
func (h *held) input() (input []byte, there bool) {
	if h == nil {
		return nil, false
	}
	input, there = h.parts[job.Input]
	return input, there || h.job.Uploaded == 0
}

// find returns a job that did not expire, with mu locked.
func (m *Memory) find(ctx context.Context, id link.ID) (*held, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	h := m.jobs[id]
	if h == nil || !m.Now().Before(h.job.Expires) {
		return nil, job.ErrNoJob
	}
	return h, nil
}

// shown is a job as callers see it.
func (m *Memory) shown(h *held) job.Job {
	j := h.job
	if j.State == job.Running && h.holder == "" && m.Now().Before(h.until) {
		j.Waits = h.until
	}
	return j
}

func (m *Memory) changed(h *held) job.Job {
	h.job.Updated = m.Now()
	h.job.Expires = h.job.Updated.Add(m.bounds.Retention)
	return m.shown(h)
}

// stored are the bytes of all jobs, and of a workspace.
func (m *Memory) stored(w link.WorkspaceID) (all, own int64) {
	for _, h := range m.jobs {
		n := int64(len(h.parts[job.Input]) + len(h.parts[job.Result]))
		if all += n; h.job.Workspace == w {
			own += n
		}
	}
	return all, own
}

func (m *Memory) room(w link.WorkspaceID, n int) error {
	if all, own := m.stored(w); n > 0 && (all >= m.bounds.Stored || own >= m.bounds.WorkspaceStored) {
		return link.ErrFull
	}
	return nil
}

// Create implements job.Store.
func (m *Memory) Create(ctx context.Context, j job.Job) (job.Job, error) {
	if err := m.bounds.Check(&j); err != nil {
		return job.Job{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, err := m.find(ctx, j.ID); err == nil {
		return m.shown(h), nil
	}
	all, unfinished := 0, 0
	for _, h := range m.jobs {
		if h.job.Workspace == j.Workspace {
			all++
			if !h.job.State.Ended() {
				unfinished++
			}
		}
	}
	if all >= m.bounds.Jobs || unfinished >= m.bounds.Unfinished {
		return job.Job{}, job.ErrTooMany
	}
	j.Created = m.Now()
	h := &held{job: j, until: j.Created, parts: map[job.Part][]byte{}}
	if !j.Input.IsZero() {
		from, err := m.find(ctx, j.Input)
		if err == nil {
			err = m.bounds.Take(&from.job, j.Workspace, j.Created)
		}
		if input, there := from.input(); err == nil && !there {
			err = job.ErrState
		} else if err == nil {
			h.parts[job.Input] = input
			delete(from.parts, job.Input)
		}
		if err != nil {
			return job.Job{}, err
		}
		h.job.Input, h.job.Size, h.job.Uploaded = link.ID{}, from.job.Size, from.job.Uploaded
	}
	m.jobs[j.ID] = h
	return m.changed(h), nil
}

// Get implements job.Store.
func (m *Memory) Get(ctx context.Context, id link.ID) (job.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.find(ctx, id)
	if err != nil {
		return job.Job{}, err
	}
	return m.shown(h), nil
}

// List implements job.Store.
func (m *Memory) List(ctx context.Context, w link.WorkspaceID, before link.ID, n int) (list []job.Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.jobs {
		h, err := m.find(ctx, id)
		if err == nil && (w == "" || h.job.Workspace == w) && (before.IsZero() || bytes.Compare(id[:], before[:]) < 0) {
			list = append(list, m.shown(h))
		}
	}
	slices.SortFunc(list, func(a, b job.Job) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return list[:min(n, len(list))], nil
}

// Append implements job.Store.
func (m *Memory) Append(ctx context.Context, id link.ID, offset int64, data []byte, complete bool) (job.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.find(ctx, id)
	if err != nil {
		return job.Job{}, err
	}
	if data, err = m.bounds.Next(&h.job, offset, data, complete); err != nil {
		return job.Job{}, err
	}
	if err := m.room(h.job.Workspace, len(data)); err != nil {
		return job.Job{}, err
	}
	h.parts[job.Input] = append(h.parts[job.Input], data...)
	h.job.Uploaded += int64(len(data))
	if complete && h.job.State == job.Uploading {
		h.job.State, h.until = job.Queued, m.Now()
	}
	return m.changed(h), nil
}

// Read implements job.Store.
func (m *Memory) Read(ctx context.Context, id link.ID, part job.Part, offset int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.find(ctx, id)
	if err != nil {
		return nil, err
	}
	all := h.parts[part]
	from := min(max(offset, 0), int64(len(all)))
	return bytes.Clone(all[from:min(from+job.MaxChunk, int64(len(all)))]), nil
}

// Cancel implements job.Store.
func (m *Memory) Cancel(ctx context.Context, id link.ID) (job.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.find(ctx, id)
	switch {
	case err != nil:
		return job.Job{}, err
	case h.job.State.Ended() || h.job.State == job.Canceling:
		return m.shown(h), nil
	case h.holder != "":
		h.job.State = job.Canceling
	default:
		h.job.State = job.Canceled
	}
	return m.changed(h), nil
}

// Delete implements job.Store.
func (m *Memory) Delete(ctx context.Context, id link.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.find(ctx, id)
	if err == nil && !h.job.State.Ended() {
		err = job.ErrState
	}
	if err == nil {
		delete(m.jobs, id)
	}
	return err
}

// Claim implements job.Store.
func (m *Memory) Claim(ctx context.Context, holder string, ttl time.Duration) (job.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	var next *held
	for id := range m.jobs {
		h, err := m.find(ctx, id)
		if err != nil || h.job.State.Ended() || h.job.State == job.Uploading || now.Before(h.until) && h.holder != holder {
			continue
		}
		if next == nil || h.until.Before(next.until) {
			next = h
		}
	}
	if next == nil {
		return job.Job{}, job.ErrNoJob
	}
	if next.job.State == job.Queued {
		next.job.State = job.Running
	}
	next.job.Fence++
	next.holder, next.until = holder, now.Add(ttl)
	return m.changed(next), nil
}

// claimed returns a job under its last claim, with mu locked.
func (m *Memory) claimed(ctx context.Context, l joblease.Lease) (*held, error) {
	id, err := link.ParseID(l.Name)
	if err != nil {
		return nil, err
	}
	h, err := m.find(ctx, id)
	if errors.Is(err, job.ErrNoJob) {
		err = fmt.Errorf("%w: %w", joblease.ErrLost, err)
	}
	if err != nil {
		return nil, err
	}
	if h.holder != l.Holder || h.job.Fence != l.Fence || h.job.State.Ended() {
		return nil, joblease.ErrLost
	}
	return h, nil
}

// Renew implements job.Store.
func (m *Memory) Renew(ctx context.Context, l joblease.Lease, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.claimed(ctx, l)
	if err == nil {
		h.until = m.Now().Add(ttl)
	}
	return err
}

// Release implements job.Store.
func (m *Memory) Release(ctx context.Context, l joblease.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, err := m.claimed(ctx, l); err == nil {
		h.holder, h.until = "", m.Now()
	}
	return nil
}

// Save implements job.Store.
func (m *Memory) Save(ctx context.Context, l joblease.Lease, s job.Step) (job.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.claimed(ctx, l)
	if err != nil {
		return job.Job{}, err
	}
	if h.job.Result+int64(len(s.Result)) > m.bounds.Result {
		return job.Job{}, job.ErrTooBig
	}
	if err := m.room(h.job.Workspace, len(s.Result)); err != nil {
		return job.Job{}, err
	}
	h.parts[job.Result] = append(h.parts[job.Result], s.Result...)
	h.job.Result += int64(len(s.Result))
	h.job.Progress, h.job.Error = s.Progress, s.Error
	if s.State != "" {
		h.job.State = s.State
	}
	if s.Release || s.State != "" {
		h.holder, h.until = "", m.Now().Add(s.Wait)
	}
	j := m.changed(h)
	h.job.Expires = h.job.Expires.Add(s.Wait)
	j.Expires = h.job.Expires
	return j, nil
}

// Sweep implements job.Store.
func (m *Memory) Sweep(ctx context.Context) (more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, h := range m.jobs {
		if _, err := m.find(ctx, id); err != nil && ctx.Err() == nil {
			delete(m.jobs, id)
		} else if h.job.State.Ended() && m.Now().Sub(h.job.Updated) >= m.bounds.RetainInput {
			delete(h.parts, job.Input)
		}
	}
	return false, context.Cause(ctx)
}

package coldsql

import (
	"context"
	"fmt"
	"time"

	"curt/internal/joblease"
	"curt/internal/link"
)

// JobLeases implements joblease.Store. Its time is the database's.
type JobLeases struct{ db DB }

var _ joblease.Store = JobLeases{}

const (
	// No row: another holder has the job.
	sqlAcquireJob = `INSERT INTO job_leases AS old (name, holder, fence, until) VALUES ($1, $2, 1, {now} + $3)
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = old.fence + 1, until = excluded.until
	WHERE old.until <= {now} OR old.holder = excluded.holder`
	sqlJobFence   = `SELECT fence FROM job_leases WHERE name = $1`
	sqlRenewJob   = `UPDATE job_leases SET until = {now} + $4 WHERE name = $1 AND holder = $2 AND fence = $3 AND until > 0`
	sqlReleaseJob = `UPDATE job_leases SET until = 0 WHERE name = $1 AND holder = $2 AND fence = $3`
)

// Acquire implements joblease.Store.
func (s JobLeases) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (joblease.Lease, error) {
	l := joblease.Lease{Name: name, Holder: holder}
	if name == "" || len(name) > joblease.MaxName || holder == "" || len(holder) > joblease.MaxName || ttl < time.Millisecond {
		return l, fmt.Errorf("acquire the job %.20q: its name, holder or time: %w", name, link.ErrInvalid)
	}
	err := s.db.Write(ctx, 1, func(t Tx) error {
		won, err := t.Exec(sqlAcquireJob, name, holder, ttl.Milliseconds())
		if err == nil && won == 0 {
			err = joblease.ErrHeld
		}
		if err != nil {
			return err
		}
		_, err = One(t, sqlJobFence, func(r *Row) { l.Fence = uint64(r.Int()) }, name)
		return err
	})
	if err != nil {
		return joblease.Lease{}, fmt.Errorf("acquire the job %s: %w", name, err)
	}
	return l, nil
}

// Renew implements joblease.Store.
func (s JobLeases) Renew(ctx context.Context, l joblease.Lease, ttl time.Duration) error {
	err := s.db.Change(ctx, 1, func(t Tx) error {
		kept, err := t.Exec(sqlRenewJob, l.Name, l.Holder, int64(l.Fence), ttl.Milliseconds())
		if err == nil && kept == 0 {
			err = joblease.ErrLost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("renew the job %s: %w", l.Name, err)
	}
	return nil
}

// Release implements joblease.Store.
func (s JobLeases) Release(ctx context.Context, l joblease.Lease) error {
	err := s.db.Change(ctx, 1, func(t Tx) error {
		_, err := t.Exec(sqlReleaseJob, l.Name, l.Holder, int64(l.Fence))
		return err
	})
	if err != nil {
		return fmt.Errorf("release the job %s: %w", l.Name, err)
	}
	return nil
}

package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"curt/internal/clicks/ship"
	"curt/internal/compose"
	"curt/internal/datafolder"
)

// enlister has this server known as one that may hold clicks, before its first one. Where that
// cannot be written it serves all the same: the row of its folder's life before may be there still,
// and it is tried again.
type enlister struct {
	enlist func(context.Context, ship.Sender) error
	sender ship.Sender
	log    *slog.Logger

	known atomic.Bool
}

// How often a server looks whether it is still known, as after a restore of the database, and
// how often it tries to be.
const enlistAgain, enlistRetry = time.Minute, time.Second

var errUnknown = errors.New("this server is not registered as a sender of clicks")

// newEnlister describes this server; state is the file of its Shipper.
func (p *Pipeline) newEnlister(began time.Time, state string) (*enlister, error) {
	if p.stores.Senders == nil {
		return nil, errors.New("clicks of several servers, but links of one") // which the settings are refused for
	}
	name, err := datafolder.Instance(p.env.Config.Data)
	if err != nil {
		return nil, err
	}
	oldest, err := ship.Unsent(p.log, state)
	switch {
	case err != nil: // how old they are is not known
		began = time.UnixMilli(0)
	case !oldest.IsZero() && oldest.Before(began):
		began = oldest
	}
	host, _ := os.Hostname() // "" where it has none
	return &enlister{
		enlist: p.stores.Senders.Enlist, log: p.env.Log,
		sender: ship.Sender{Folder: name, Host: host, Instance: p.capture.Instance(), Began: began},
	}, nil
}

// try writes it down.
func (e *enlister) try(ctx context.Context) error {
	err := e.enlist(ctx, e.sender)
	if err == nil {
		e.known.Store(true)
	}
	return err
}

// Run goes on trying until ctx ends, and looks now and then whether it is still so.
func (e *enlister) Run(ctx context.Context) error {
	return compose.Retry(ctx, e.log, slog.LevelWarn, "registering this server as a sender of clicks failed, retrying", "registering this server as a sender of clicks recovered", func(ctx context.Context) (time.Duration, error) {
		err := e.try(ctx)
		if e.known.Load() {
			return enlistAgain, err
		}
		return enlistRetry, err
	})
}

// Healthy returns nil once others know of this server.
func (e *enlister) Healthy() error {
	if e.known.Load() {
		return nil
	}
	return errUnknown
}

// senders are those who may hold clicks, this server among them, which waits for itself although
// others do not know that they should.
func (p *Pipeline) senders(ctx context.Context) ([]ship.Sender, error) {
	if p.stores.Senders == nil {
		return nil, nil
	}
	all, err := p.stores.Senders.All(ctx)
	if e := p.enlister; err == nil && e != nil && !e.known.Load() {
		all = append(all, e.sender)
	}
	return all, err
}

// Silent are the names of those who are waited for and have not been heard of for long.
func (p *Pipeline) Silent() (names []string) {
	if p.ClickHouse == nil {
		return nil
	}
	for _, one := range p.ClickHouse.LastProgress().Senders {
		if one.Gone {
			names = append(names, one.Folder)
		}
	}
	return names
}

package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/postgres"
	"curt/internal/clicks"
	"curt/internal/config"
	"curt/internal/repeatlog"
)

// enlister has this server known as one that may hold clicks, before its first one. Where that
// cannot be written it serves all the same: the row of its folder's life before may be there still,
// and it is tried again.
type enlister struct {
	enlist func(context.Context, clicks.Sender) error
	sender clicks.Sender
	log    *slog.Logger

	known atomic.Bool
}

// How often a server looks whether it is still known, as after a restore of the database, and
// how often it tries to be.
const enlistAgain, enlistRetry = time.Minute, time.Second

var errUnknown = errors.New("the servers that show statistics do not know of the clicks of this one")

// newEnlister describes this server; state is the file of its Shipper.
func (s *Server) newEnlister(began time.Time, state string) (*enlister, error) {
	if s.stores.senders == nil {
		return nil, errors.New("clicks of several servers, and links of one") // which the settings are refused for
	}
	name, err := instance(s.config.Data)
	if err != nil {
		return nil, err
	}
	oldest, err := clicks.Unsent(s.clicks.log, state)
	switch {
	case err != nil: // how old they are is not known
		began = time.UnixMilli(0)
	case !oldest.IsZero() && oldest.Before(began):
		began = oldest
	}
	host, _ := os.Hostname() // "" where it has none
	return &enlister{
		enlist: s.stores.senders.Enlist, log: s.log,
		sender: clicks.Sender{Folder: name, Host: host, Instance: s.clicks.capture.Instance(), Began: began},
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
	var failing repeatlog.Condition
	for pause := enlistRetry; ctx.Err() == nil; wait(ctx, pause, nil) {
		err := e.try(ctx)
		if pause = enlistAgain; !e.known.Load() {
			pause = enlistRetry
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if again, due := failing.Met(time.Now()); due {
				e.log.WarnContext(ctx, "others may not wait for the clicks of this server: it cannot be written down", slog.Any("err", err), again)
			}
		default:
			if sum, due := failing.Over(time.Now()); due {
				e.log.InfoContext(ctx, "this server is written down", sum)
			}
		}
	}
	return nil
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
func (s *Server) senders(ctx context.Context) ([]clicks.Sender, error) {
	if s.stores.senders == nil {
		return nil, nil
	}
	all, err := s.stores.senders.All(ctx)
	if e := s.events.enlister; err == nil && e != nil && !e.known.Load() {
		all = append(all, e.sender)
	}
	return all, err
}

// dismissEvery is how often workers look for senders that have ended.
const dismissEvery = 10 * time.Second

// dismiss forgets senders all of whose clicks are counted, until ctx ends. What fails is done at
// the next turn: a sender that has ended holds up nobody.
func (s *Server) dismiss(ctx context.Context) error {
	for ; ctx.Err() == nil; wait(ctx, dismissEvery, nil) {
		for _, one := range s.clicks.counted.Known().Senders {
			if s.stores.senders == nil || !one.Ended {
				continue
			}
			if err := s.stores.senders.Dismiss(ctx, one.Sender); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "a server that has ended is still listed", slog.Any("err", err))
			}
		}
	}
	return nil
}

// silent are the names of those who are waited for and have not been heard of for long.
func (p *pipeline) silent() (names []string) {
	if p.counted == nil {
		return nil
	}
	for _, one := range p.counted.Known().Senders {
		if one.Gone {
			names = append(names, one.Folder)
		}
	}
	return names
}

// ClickSenders returns the servers that may hold clicks, and how far these have come. An error of
// the settings is a [*config.Error].
func ClickSenders(ctx context.Context, cfg config.Config) (all []clickhouse.SenderProgress, err error) {
	err = withSenders(ctx, cfg, func(senders postgres.Senders) error {
		if !config.IsClickHouse(cfg.Analytics) {
			return noClickHouse(cfg)
		}
		c := counting(cfg, nil)
		c.Senders = senders.All
		store, err := clickhouse.Open(ctx, c)
		if err != nil {
			return wrongClickHouse(cfg, err)
		}
		p, err := store.Progress(ctx, time.Now())
		all = p.Senders
		return errors.Join(err, store.Close())
	})
	return all, err
}

// ForgetSender has nobody wait for clicks of a folder any more; false = no such folder is known.
func ForgetSender(ctx context.Context, cfg config.Config, folder string) (found bool, err error) {
	err = withSenders(ctx, cfg, func(senders postgres.Senders) error {
		found, err = senders.Forget(ctx, folder)
		return err
	})
	return found, err
}

func withSenders(ctx context.Context, cfg config.Config, f func(postgres.Senders) error) (err error) {
	if cfg.Events == "" || cfg.Links == config.SQLite {
		return &config.Error{Setting: "CURT_EVENTS", Value: config.Redact(cfg.Events), Want: "want kafka://host:port/topic here, and CURT_LINKS=postgres://host/database"}
	}
	links, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: cfg.Links})
	if err != nil {
		return wrongDatabase("CURT_LINKS", cfg.Links, err)
	}
	return errors.Join(f(links.Senders()), links.Close())
}

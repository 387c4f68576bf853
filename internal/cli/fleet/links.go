package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"curt/internal/backend/dynamodb/tables"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/clicks/ship"
	"curt/internal/config"
	"curt/internal/settings"
)

// links returns the parts of the link store: the pooler, the primary and its standbys. Where links cannot be
// opened and no part says why, that is a problem of the one that CURT_LINKS leads to, the first.
func (c *Status) links(ctx context.Context, senders func() ([]ship.Sender, error)) (all []part) {
	if config.IsDynamoDB(c.Links) {
		p := newPart("dynamodb", hostsOf(c.Links), "links")
		if _, err := tables.Probe(ctx, c.Links); err != nil {
			p.fail(oneLine(err))
		} else if _, err := senders(); err != nil {
			p.fail("links cannot be opened: " + oneLine(err))
		}
		return []part{p}
	}
	var running sync.WaitGroup
	standbys, states := make([]part, len(c.LinksReplicas)), make([]*pgdb.Replication, len(c.LinksReplicas))
	for i, url := range c.LinksReplicas {
		running.Go(func() { standbys[i], states[i] = standby(ctx, url) })
	}
	running.Go(func() { _, _ = senders() }) // is asked again below
	running.Go(func() { all = c.pooler(ctx) })
	p, primary := c.primary(ctx)
	running.Wait()
	all = append(all, p)
	if _, err := senders(); errors.Is(err, pgdb.ErrNotMigrated) {
		all[0].warn(pgdb.ErrNotMigrated.Error())
	} else if err != nil && all[0].State != failure && p.State != failure {
		all[0].fail("links cannot be opened: " + oneLine(err))
	}
	return append(append(all, standbys...), unnamed(primary, states)...)
}

// senders returns the servers that may hold clicks. It changes nothing: a status is no reason to migrate.
func (c *Status) senders(ctx context.Context) ([]ship.Sender, error) {
	return settings.SendersOf(ctx, c.Config)
}

// pooler returns no part if CURT_LINKS leads to PostgreSQL itself.
func (c *Status) pooler(ctx context.Context) []part {
	if c.Primary == "" && strings.Contains(hostsOf(c.Links), ",") {
		return nil
	}
	p := newPart("pgbouncer", hostsOf(c.Links), "pooler")
	state, err := pgdb.InspectPooler(ctx, c.Links)
	switch {
	case errors.Is(err, pgdb.ErrNoPooler), err != nil && c.Primary == "": // the primary has that problem
		return nil
	case err != nil:
		p.fail(oneLine(err))
	case state.Longest > 0: // a busy pool has some that wait for milliseconds
		p.warn(fmt.Sprintf("%d clients wait for a connection, the first for %s", state.Waiting, state.Longest))
	}
	p.Version = state.Version
	return []part{p}
}

func (c *Status) primary(ctx context.Context) (part, pgdb.Replication) {
	at := c.Primary
	if at == "" {
		at = c.Links
	}
	p := newPart("postgresql", hostsOf(at), "primary")
	state, err := pgdb.InspectPrimary(ctx, at)
	if err != nil {
		p.fail(oneLine(err))
		return p, state
	}
	p.Version = state.Version
	var lag time.Duration
	var named []string
	for _, s := range state.Standbys {
		if lag = max(lag, s.Lag); s.Sync != "" {
			named = append(named, s.Name+" "+s.Sync)
		}
	}
	if p.Lag = lag.Round(time.Millisecond).String(); len(named) > 0 {
		p.Role += " of " + strings.Join(named, ", ")
	}
	if !state.Confirmed() {
		p.fail("commits wait: no standby of synchronous_standby_names is connected (" + state.Synchronous + ")")
	}
	for _, name := range state.Missing {
		p.warn("standby " + name + " is not connected")
	}
	if lag > behind {
		p.warn("a standby lags")
	}
	return p, state
}

// standby returns the part of a URL of CURT_LINKS_REPLICAS, and no state of one that does not answer.
func standby(ctx context.Context, at string) (part, *pgdb.Replication) {
	p := newPart("postgresql", hostsOf(at), "standby")
	state, err := pgdb.InspectStandby(ctx, at)
	switch {
	case err != nil:
		p.fail(oneLine(err))
		return p, nil
	case !state.InRecovery:
		p.warn("is a primary, not a standby: correct CURT_LINKS_REPLICAS")
	}
	p.Version, p.Lag = state.Version, fmt.Sprintf("%d bytes", state.Unapplied)
	return p, &state
}

// unnamed returns the standbys that CURT_LINKS_REPLICAS does not name, as far as the primary knows of them. Which slot
// one has that is named and does not answer nobody can say: as many that are not connected are left out.
func unnamed(primary pgdb.Replication, named []*pgdb.Replication) (all []part) {
	for _, s := range primary.Standbys {
		if s.State == "" || slices.ContainsFunc(named, func(r *pgdb.Replication) bool { return r != nil && s.Is(*r) }) {
			continue
		}
		p := newPart("postgresql", s.Address, strings.TrimSuffix("standby "+s.Name+", "+s.Sync, ", "))
		if p.Lag = s.Lag.Round(time.Millisecond).String(); s.State != "streaming" {
			p.warn("is not up to date: " + s.State)
		}
		all = append(all, p)
	}
	down := 0
	for _, r := range named {
		if r == nil {
			down++
		}
	}
	if len(primary.Missing) <= down {
		return all
	}
	for _, slot := range primary.Missing {
		p := newPart("postgresql", "", "standby "+slot)
		p.warn("is not connected")
		all = append(all, p)
	}
	return all
}

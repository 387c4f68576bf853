package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/dynamodb"
	"curt/internal/backend/kafka"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/redis"
	"curt/internal/config"
	"curt/internal/settings"
)

// behind is from when on a lag is a problem.
const behind = time.Minute

func joined(texts []string) string { return strings.Join(texts, "; ") }

// oneLine is an error as the text of a problem; the address is in its own column.
func oneLine(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections"
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	}
	return settings.OneLine(err).Error()
}

// hostsOf returns the hosts of a URL.
func hostsOf(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	rest, _, _ = strings.Cut(rest, "/")
	rest, _, _ = strings.Cut(rest, "?")
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// pooler returns no part if CURT_LINKS leads to PostgreSQL itself.
func (c *Status) pooler(ctx context.Context) []part {
	if config.IsDynamoDB(c.Links) || c.Primary == "" && strings.Contains(hostsOf(c.Links), ",") {
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

func (c *Status) primary(ctx context.Context) []part {
	at := c.Primary
	if at == "" {
		at = c.Links
	}
	if config.IsDynamoDB(at) {
		p := newPart("dynamodb", hostsOf(at), "links")
		if _, err := dynamodb.Probe(ctx, at); err != nil {
			p.fail(oneLine(err))
		}
		return []part{p}
	}
	p := newPart("postgresql", hostsOf(at), "primary")
	state, err := pgdb.InspectPrimary(ctx, at)
	if err != nil {
		p.fail(oneLine(err))
		return []part{p}
	}
	p.Version = state.Version
	var lag time.Duration
	var sync []string
	for _, s := range state.Standbys {
		if lag = max(lag, s.Lag); s.Sync != "" {
			sync = append(sync, s.Name+" "+s.Sync)
		}
	}
	if p.Lag = lag.Round(time.Millisecond).String(); len(sync) > 0 {
		p.Role += " of " + strings.Join(sync, ", ")
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
	return []part{p}
}

func standby(ctx context.Context, at string) []part {
	p := newPart("postgresql", hostsOf(at), "standby")
	state, err := pgdb.InspectStandby(ctx, at)
	switch {
	case err != nil:
		p.fail(oneLine(err))
		return []part{p}
	case !state.InRecovery:
		p.warn("is a primary, not a standby: correct CURT_LINKS_REPLICAS")
	}
	p.Version, p.Lag = state.Version, fmt.Sprintf("%d bytes", state.Unapplied)
	return []part{p}
}

func (c *Status) redis(ctx context.Context) []part {
	if c.Cache == "" {
		return nil
	}
	p := newPart("redis", hostsOf(c.Cache), "cache")
	state, err := redis.Inspect(ctx, c.Cache)
	if p.Version = state.Version; state.Mode != "" {
		p.Role = state.Mode
	}
	for _, address := range state.Unavailable {
		p.warn(address + " accepts no connection")
	}
	switch {
	case err != nil:
		p.fail(oneLine(err))
	case state.Mode == "sentinel" && state.Replicas == 0:
		p.warn("no replica: Sentinel cannot fail over")
	case state.Mode == "sentinel":
		p.Role += fmt.Sprintf(", %d replicas", state.Replicas)
	}
	return []part{p}
}

func (c *Status) kafka(ctx context.Context) []part {
	if c.Events == "" {
		return nil
	}
	p := newPart("kafka", hostsOf(c.Events), "events")
	at, err := settings.Kafka(c.Config)
	if err != nil {
		p.fail(oneLine(err))
		return []part{p}
	}
	state, err := kafka.Inspect(ctx, at)
	if state.Partitions > 0 {
		p.Role = fmt.Sprintf("%d partitions", state.Partitions)
	}
	switch {
	case errors.Is(err, kafka.ErrNoTopic):
		p.fail("topic " + at.Topic + " is missing; run curt migrate")
		return []part{p}
	case err != nil:
		p.fail(oneLine(err))
		return []part{p}
	}
	if state.Brokers < len(at.Brokers) {
		p.warn(fmt.Sprintf("%d of %d brokers are available", state.Brokers, len(at.Brokers)))
	}
	if state.Offline > 0 {
		p.fail(fmt.Sprintf("%d partitions have no leader", state.Offline))
	}
	if state.Lacking > 0 {
		p.warn(fmt.Sprintf("%d partitions lack a replica", state.Lacking))
	}
	if state.Workers == 0 {
		p.fail("no worker reads the topic")
	}
	return []part{p}
}

// clickHouse returns each replica, and each server of whose clicks nothing was heard for long.
func (c *Status) clickHouse(ctx context.Context, now time.Time) (all []part) {
	if !config.IsClickHouse(c.Analytics) {
		return nil
	}
	seen := map[string]bool{}
	for _, with := range settings.ClickHouses(c.Config, nil) {
		p := newPart("clickhouse", hostsOf(with.URL), "statistics")
		what, err := clickdb.Probe(ctx, with.URL)
		if err == nil {
			p.Version, _, _ = strings.Cut(strings.TrimPrefix(what, "ClickHouse "), ",")
			var silent []part
			silent, err = c.complete(ctx, with, &p, now)
			for _, one := range silent { // each replica knows of them
				if !seen[one.Address+one.Role] {
					seen[one.Address+one.Role] = true
					all = append(all, one)
				}
			}
		}
		if err != nil {
			p.fail(oneLine(err))
		}
		all = append(all, p)
	}
	return all
}

// complete adds up to when statistics are complete, and returns the servers that hold them back.
func (c *Status) complete(ctx context.Context, with clickhouse.Config, p *part, now time.Time) (silent []part, err error) {
	err = settings.WithSenders(ctx, c.Config, func(senders settings.Senders) (err error) {
		with.Senders = senders.All
		silent, err = completeOf(ctx, with, p, now)
		return err
	})
	return silent, err
}

func completeOf(ctx context.Context, with clickhouse.Config, p *part, now time.Time) (silent []part, err error) {
	store, err := clickhouse.Open(ctx, with)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	progress, err := store.Progress(ctx, now)
	if err != nil {
		return nil, err
	}
	age := now.Sub(progress.Complete).Round(time.Second)
	switch {
	case progress.Complete.IsZero():
		p.warn("no clicks were counted yet")
	default:
		if p.Lag = age.String(); age > behind {
			p.warn("statistics are complete until " + progress.Complete.Format(time.RFC3339))
		}
	}
	for _, s := range progress.Senders {
		if s.Gone {
			one := newPart("server", s.Host, "sender "+s.Folder)
			one.warn("silent since " + s.LastContact.Format(time.RFC3339) + ": start it, or run curt clicks forget " + s.Folder)
			silent = append(silent, one)
		}
	}
	return silent, nil
}

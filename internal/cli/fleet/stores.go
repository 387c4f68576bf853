package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/kafka"
	"curt/internal/backend/redis"
	"curt/internal/backend/zookeeper"
	"curt/internal/clicks/ship"
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

func (c *Status) redis(ctx context.Context) []part {
	if c.Cache == "" {
		return nil
	}
	p := newPart("redis", hostsOf(c.Cache), "cache")
	state, err := redis.Inspect(ctx, c.Cache)
	kind := ""
	if p.Version = state.Version; state.Mode != "" {
		p.Role = state.Mode
	}
	if state.Mode == "sentinel" {
		kind = "Sentinel "
	}
	if state.Primary != "" { // else the address is that of the Sentinels, which is all that is known
		p.Address, p.Role = state.Primary, "primary"
	}
	for _, address := range state.Unavailable {
		p.warn(kind + address + " accepts no connection")
	}
	switch {
	case err != nil:
		p.fail(oneLine(err))
	case kind != "" && state.Replicas == 0:
		p.warn("no replica: Sentinel cannot fail over")
	case kind != "":
		p.Role += fmt.Sprintf(", replicas: %d", state.Replicas)
	}
	return []part{p}
}

func (c *Status) zooKeeper(ctx context.Context) []part {
	if c.IDs == "" {
		return nil
	}
	p := newPart("zookeeper", hostsOf(c.IDs), "ids")
	at, err := settings.ZooKeeper(c.Config)
	if err != nil {
		p.fail(oneLine(err))
		return []part{p}
	}
	state := zookeeper.Inspect(ctx, at)
	if p.Version = state.Version; len(state.Modes) > 0 {
		p.Role += ", " + strings.Join(state.Modes, ", ")
	}
	for _, address := range state.Unavailable {
		p.warn(address + " does not serve")
	}
	if _, err := zookeeper.Probe(ctx, at); err != nil { // servers create links on until their ranges are used up
		p.fail(oneLine(err))
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
	if state, known := topic(ctx, &p, at); known && state.Workers == 0 {
		p.fail("no worker reads the topic")
	}
	return []part{p}
}

// queue is the topic of links that wait for a writer.
func (c *Status) queue(ctx context.Context) []part {
	if !c.Queues() {
		return nil
	}
	p := newPart("kafka", hostsOf(cmp.Or(c.WritesKafka, c.Events)), "queue")
	at, err := settings.Queue(c.Config)
	if err != nil {
		p.fail(oneLine(err))
		return []part{p}
	}
	state, known := topic(ctx, &p, at)
	p.Role = strings.TrimSuffix("queue "+at.Topic+", "+p.Role, ", queue")
	if !known {
		return []part{p}
	}
	p.Lag = fmt.Sprintf("%d links", state.Waiting)
	drains := time.Duration(state.Waiting) * time.Second / time.Duration(max(1, c.WritesRate))
	switch {
	case state.Workers == 0:
		p.fail("no writer reads the topic")
	case drains > behind:
		p.warn(fmt.Sprintf("the last link waits for %s at CURT_WRITES_RATE", drains.Round(time.Second)))
	}
	if err := at.Safe(ctx); errors.Is(err, kafka.ErrUnsafe) && !c.WritesLoss {
		p.fail(oneLine(err))
	}
	return []part{p}
}

// topic adds what is wrong with a topic and its brokers. known is false where they could not be asked.
func topic(ctx context.Context, p *part, at kafka.Config) (state kafka.State, known bool) {
	state, err := kafka.Inspect(ctx, at)
	if state.Partitions > 0 {
		p.Role = fmt.Sprintf("%d partitions", state.Partitions)
	}
	switch {
	case errors.Is(err, kafka.ErrNoTopic):
		p.fail("topic " + at.Topic + " is missing; run curt migrate")
		return state, false
	case err != nil:
		p.fail(oneLine(err))
		return state, false
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
	return state, true
}

// clickHouse returns each replica, and each server of whose clicks nothing was heard for long.
func (c *Status) clickHouse(ctx context.Context, senders func() ([]ship.Sender, error), now time.Time) (all []part) {
	if !config.IsClickHouse(c.Analytics) {
		return nil
	}
	seen := map[string]bool{}
	for _, with := range settings.ClickHouses(c.Config, nil) {
		p := newPart("clickhouse", hostsOf(with.URL), "statistics")
		found, err := clickdb.Probe(ctx, with.DB())
		switch p.Version = found.Version; {
		case err != nil:
		case !found.Migrated:
			p.warn(clickdb.ErrNotMigrated.Error())
		default:
			var silent []part
			silent, err = complete(ctx, with, senders, &p, now)
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

// complete adds up to when statistics are complete, and returns the servers that hold them back. Without the
// link store nobody knows; that is a problem of another part.
func complete(ctx context.Context, with clickhouse.Config, senders func() ([]ship.Sender, error), p *part, now time.Time) (silent []part, err error) {
	all, err := senders()
	if err != nil {
		p.Lag = "unknown"
		return nil, nil
	}
	with.Senders = func(context.Context) ([]ship.Sender, error) { return all, nil }
	store, err := clickhouse.New(with) // which changes nothing there
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	progress, err := store.Progress(ctx, now)
	if err != nil {
		return nil, err
	}
	state, err := store.Replica(ctx)
	if err != nil {
		return nil, err
	}
	age := now.Sub(progress.Complete).Round(time.Second)
	switch lacking := store.Lacking(state); {
	case lacking != nil:
		p.warn(lacking.Error())
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

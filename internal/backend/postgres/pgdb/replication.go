package pgdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Replication is the state of a server and, if it is the primary, of its standbys.
type Replication struct {
	Version     string
	InRecovery  bool      // a standby
	Synchronous string    // synchronous_standby_names
	Standbys    []Standby // connected ones
	Missing     []string  // replication slots without a standby
	Unapplied   int64     // of a standby: bytes of the log that were received and not replayed
	Name, Slot  string    // of a standby: what it calls itself at its primary, and its replication slot there
}

// Standby is a connected one. State and Sync are "" for a role without pg_monitor.
type Standby struct {
	Name, State, Sync string
	Slot              string        // "" = it has none
	Address           string        // of its machine
	Lag               time.Duration // until it has replayed what was written
}

// Is reports whether a standby is the server of that state.
func (s Standby) Is(r Replication) bool {
	if s.Slot != "" || r.Slot != "" {
		return s.Slot == r.Slot
	}
	return s.Name == r.Name && s.Name != ""
}

// Confirmed reports whether commits return: no standby has to confirm them, or one can.
func (r Replication) Confirmed() bool {
	if r.Synchronous == "" {
		return true
	}
	for _, s := range r.Standbys {
		if s.State == "" || s.State == "streaming" && (s.Sync == "sync" || s.Sync == "quorum") {
			return true
		}
	}
	return false
}

const (
	sqlServer = `SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('synchronous_standby_names'),
		coalesce(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), 0)::bigint,
		coalesce((SELECT substring(conninfo FROM '(?:^|\s)application_name=(\S+)') FROM pg_stat_wal_receiver), ''),
		coalesce((SELECT slot_name FROM pg_stat_wal_receiver), '')`
	sqlStandbys = `SELECT coalesce(r.application_name, ''), coalesce(r.state, ''), coalesce(r.sync_state, ''),
		coalesce(s.slot_name::text, ''), coalesce(host(r.client_addr), ''), coalesce(extract(epoch FROM r.replay_lag), 0)::float8
		FROM pg_stat_replication r LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
		WHERE r.state IS DISTINCT FROM 'backup' ORDER BY 1`
	sqlUnusedSlots = `SELECT slot_name FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active ORDER BY 1`
)

// InspectPrimary returns the state of the server of a URL that accepts writes.
func InspectPrimary(ctx context.Context, url string) (Replication, error) {
	pool, err := NewPool(ctx, url, 1)
	if err != nil {
		return Replication{}, err
	}
	defer pool.Close()
	return inspect(ctx, pool)
}

// InspectStandby returns the state of the one server of a URL.
func InspectStandby(ctx context.Context, url string) (Replication, error) {
	pool, err := NewLazyPool(url, 1)
	if err != nil {
		return Replication{}, err
	}
	defer pool.Close()
	return inspect(ctx, pool)
}

func inspect(ctx context.Context, pool *pgxpool.Pool) (r Replication, err error) {
	version := ""
	if err := pool.QueryRow(ctx, sqlServer).Scan(&version, &r.InRecovery, &r.Synchronous, &r.Unapplied, &r.Name, &r.Slot); err != nil {
		return r, fmt.Errorf("read the state of the server: %w", err)
	}
	r.Version, _, _ = strings.Cut(version, " ") // without the packager
	rows, err := pool.Query(ctx, sqlStandbys)
	if err == nil {
		r.Standbys, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Standby, err error) {
			var seconds float64
			err = row.Scan(&s.Name, &s.State, &s.Sync, &s.Slot, &s.Address, &seconds)
			s.Lag = time.Duration(seconds * float64(time.Second))
			return s, err
		})
	}
	if err != nil {
		return r, fmt.Errorf("list standbys: %w", err)
	}
	if rows, err = pool.Query(ctx, sqlUnusedSlots); err == nil {
		r.Missing, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return r, fmt.Errorf("list replication slots: %w", err)
	}
	return r, nil
}

// ErrNoPooler says that a URL leads to a server, not to PgBouncer.
var ErrNoPooler = errors.New("no pooler")

// Pooler is the state of a PgBouncer. Both are zero for a user that may not read it.
type Pooler struct {
	Version string
	Waiting int           // clients that wait for a connection
	Longest time.Duration // of their waits so far, to the second
}

// InspectPooler reads the console of the PgBouncer of a URL; its error may be [ErrNoPooler].
func InspectPooler(ctx context.Context, url string) (p Pooler, err error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	config.Database, config.ConnectTimeout = "pgbouncer", ConnectLimit
	console, err := pgconn.ConnectConfig(ctx, config)
	switch state := StateOf(err); {
	case err == nil:
		defer func() { _ = console.Close(ctx) }()
	case strings.HasPrefix(state, "08"): // PgBouncer's, to a user that is no stats_user
		return p, nil
	case state != "": // a server has no such database
		return p, ErrNoPooler
	default:
		return p, fmt.Errorf("connect: %w", err)
	}
	for command, read := range map[string]func(column, value string){
		"SHOW VERSION": func(_, value string) { p.Version = strings.TrimPrefix(value, "PgBouncer ") },
		"SHOW POOLS": func(column, value string) {
			n, _ := strconv.Atoi(value) // PgBouncer's numbers
			switch column {
			case "cl_waiting":
				p.Waiting += n
			case "maxwait":
				p.Longest = max(p.Longest, time.Duration(n)*time.Second)
			}
		},
	} {
		results, err := console.Exec(ctx, command).ReadAll()
		if err != nil {
			return p, fmt.Errorf("read the console: %w", err)
		}
		for _, r := range results {
			for i, column := range r.FieldDescriptions {
				for _, row := range r.Rows {
					read(column.Name, string(row[i]))
				}
			}
		}
	}
	return p, nil
}

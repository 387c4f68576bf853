package linktest

import "time"

// Driver is what one link store declares: its suite runs with these features, and
// docs/backends.md shows the rest.
type Driver struct {
	Setting  string // of CURT_LINKS
	Features Features
	Survives string // what an answered write survives
}

// SQLite is what package sqlite declares.
func SQLite() Driver {
	return Driver{
		Setting: "sqlite", Features: Features{Spender: true, Deduper: true, Batcher: true, ManyGetter: true},
		Survives: "the death of the process, a power cut",
	}
}

// PostgreSQL is what package postgres declares.
func PostgreSQL() Driver {
	return Driver{
		Setting: "postgres://…", Features: Features{Spender: true, Deduper: true, Batcher: true, ManyGetter: true},
		Survives: "the death of any process, a power cut; the loss of the server, where a standby is synchronous",
	}
}

// Replicas is what package postgres declares where look-ups ask standbys.
func Replicas() Driver {
	d := PostgreSQL()
	d.Setting = "postgres://… and CURT_LINKS_REPLICAS"
	d.Features.MaxLag = 5 * time.Second // CURT_LINKS_REPLICA_LAG
	return d
}

// Row is the driver's line in docs/backends.md.
func (d Driver) Row() string {
	yes := map[bool]string{true: "yes", false: "no"}
	lag := "never"
	if d.Features.MaxLag > 0 {
		lag = "up to " + d.Features.MaxLag.Round(time.Millisecond).String()
	}
	return "| `" + d.Setting + "` | " + d.Survives + " | " + lag + " | " + yes[d.Features.Spender] + " | " +
		yes[d.Features.Deduper] + " | " + yes[d.Features.Batcher] + " |"
}

package fleet

import (
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/postgres"
	"curt/internal/testkit"
)

// find returns the one part of a name whose role begins so.
func find(t *testing.T, all []part, name, role string) part {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(all), func(p part) bool { return p.Part != name || !strings.HasPrefix(p.Role, role) })
	if len(found) != 1 {
		t.Fatalf("%d parts %s of role %s in %+v", len(found), name, role, all)
	}
	return found[0]
}

// patience is how long is waited for what usually takes a second: a machine with other work may take minutes.
const patience = 3 * time.Minute

// intime calls f until nothing in what it returns took longer than a status waits for it: a machine with other work may.
func intime(f func() []part) (all []part) {
	for end := time.Now().Add(patience); ; {
		all = f()
		late := slices.ContainsFunc(all, func(p part) bool { return strings.Contains(joined(p.Wrong), "timed out") })
		if !late || time.Now().After(end) {
			return all
		}
	}
}

// kill ends servers at once, and returns when they accept no connection.
func kill(t *testing.T, servers ...*testkit.Redis) {
	t.Helper()
	for _, one := range servers {
		if err := syscall.Kill(one.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // another process's child
			c, err := net.Dial("tcp", one.Address)
			if err != nil {
				break
			}
			_ = c.Close()
			if time.Now().After(end) {
				t.Fatalf("%s does not end", one.Address)
			}
		}
	}
}

// migrate brings the schemas of both stores up to date.
func migrate(t *testing.T, c *Status) {
	t.Helper()
	links, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: c.Links})
	if err == nil {
		err = links.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	clicks, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: c.Analytics})
	if err == nil {
		err = clicks.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A status looks, and migrates nothing: neither an empty database nor one of an earlier schema.
func TestAStatusMigratesNothing(t *testing.T) {
	database, house := testkit.StartPostgres(t, testkit.PostgresConfig{}), testkit.StartClickHouse(t)
	name := house.Database(t)
	c := Status{}
	c.Links, c.Analytics = database.Database(t), house.URL(name)
	conn, err := pgx.Connect(t.Context(), c.Links)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // a test's
	number := func(query string) (n int64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	said := func(what string) {
		t.Helper()
		all := intime(func() []part { return c.inspect(t.Context(), time.Now()) })
		for part, want := range map[string]string{
			"postgresql": "the schema is not migrated to that of this release: run curt migrate",
			"clickhouse": "the tables are not migrated to those of this release: run curt migrate",
		} {
			if p := find(t, all, part, ""); p.State != warning || !slices.Equal(p.Wrong, []string{want}) {
				t.Errorf("%s: %+v", what, p)
			}
		}
	}
	said("empty")
	if n := number("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"); n != 0 {
		t.Errorf("the empty database has %d relations", n)
	}
	if n := house.Exec(t, "SELECT count() FROM system.tables WHERE database = '"+name+"'"); n != "0" {
		t.Errorf("the empty database of ClickHouse has %s tables", n)
	}
	migrate(t, &c)
	const newest = "SELECT max(version_id) FROM goose_db_version"
	if _, err := conn.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id = ("+newest+")"); err != nil {
		t.Fatal(err)
	}
	house.Exec(t, "DELETE FROM "+name+".migrations WHERE version = 300")
	before := number(newest)
	said("an earlier schema")
	if after := number(newest); after != before {
		t.Errorf("the schema was %d and is %d", before, after)
	}
	if n := house.Exec(t, "SELECT max(version) FROM "+name+".migrations"); n != "200" {
		t.Errorf("the schema of ClickHouse is %s", n)
	}
}

// A link store that fails is a problem of its own part, and of no other that needs it.
func TestTheLinkStoreIsBlamedForItself(t *testing.T) {
	database := testkit.StartPostgres(t, testkit.PostgresConfig{})
	c := Status{}
	house := testkit.StartClickHouse(t)
	c.Analytics, c.Events = house.URL(house.Database(t)), ""
	c.Links = database.Database(t)
	migrate(t, &c)
	inspected := func() []part { return intime(func() []part { return c.inspect(t.Context(), time.Now()) }) }
	if p := find(t, inspected(), "clickhouse", ""); p.State != warning || p.Lag != "" || p.Version == "" {
		t.Errorf("without clicks: %+v", p)
	}
	for name, tt := range map[string]struct{ links, primary, want string }{
		"nobody listens":   {links: "postgres://curt@127.0.0.1:1/curt?sslmode=disable", want: "refuses connections"},
		"another database": {links: database.URL("missing"), primary: database.URL("postgres"), want: "links cannot be opened: "},
	} {
		c.Links, c.Primary = tt.links, tt.primary
		all := inspected()
		if p := find(t, all, "clickhouse", ""); p.State != ok || len(p.Wrong) > 0 || p.Lag != "unknown" {
			t.Errorf("%s: ClickHouse is %+v", name, p)
		}
		if p := find(t, all, "postgresql", "primary"); p.State != failure || len(p.Wrong) != 1 || !strings.HasPrefix(p.Wrong[0], tt.want) {
			t.Errorf("%s: the primary is %+v", name, p)
		}
	}
}

// The line of Redis is that of the primary, as Sentinels name it, also of one that is down.
func TestTheRedisPrimaryIsNamedBySentinel(t *testing.T) {
	s := testkit.StartSentinel(t)
	for _, one := range s.Sentinels { // a primary that is held up for a second is no reason to promote the replica
		one.Do(t, "sentinel", "set", "curt", "down-after-milliseconds", "600000")
	}
	c := Status{}
	c.Cache = s.URL()
	status := func() part {
		return find(t, intime(func() []part { return c.redis(t.Context()) }), "redis", "")
	}
	if p := status(); p.State != ok || p.Address != s.Primary.Address || p.Role != "primary, replicas: 1" || p.Version == "" {
		t.Errorf("all is well: %+v", p)
	}
	kill(t, s.Sentinels[0])
	if p := status(); p.State != warning || p.Address != s.Primary.Address || !slices.Equal(p.Wrong, []string{"Sentinel " + s.Sentinels[0].Address + " accepts no connection"}) {
		t.Errorf("a Sentinel is down: %+v", p)
	}
	kill(t, s.Replica, s.Primary) // nobody is left to promote
	if p := status(); p.State != failure || p.Address != s.Primary.Address || p.Role != "primary" || !slices.Contains(p.Wrong, "refuses connections") {
		t.Errorf("the primary is down: %+v", p)
	}
	kill(t, s.Sentinels[1], s.Sentinels[2])
	if p := status(); p.State != failure || p.Address != hostsOf(c.Cache) || p.Role != "sentinel" || len(p.Wrong) != 4 {
		t.Errorf("all are down: %+v", p)
	}
}

// Each standby has a line: those that CURT_LINKS_REPLICAS names, and those that the primary knows of.
func TestEachStandbyHasALine(t *testing.T) {
	primary := testkit.StartPostgres(t, testkit.PostgresConfig{Fsync: true})
	first := testkit.StartStandby(t, primary)
	t.Setenv("CURT_STANDBY", "standby_2")
	t.Setenv("CURT_STANDBYS", "ANY 1 (standby, standby_2)")
	second := testkit.StartStandby(t, primary)
	c := Status{}
	c.Links, c.LinksReplicas = primary.URL("curt"), []string{first.URL("curt")}
	status := func() []part {
		all := c.inspect(t.Context(), time.Now())
		return slices.DeleteFunc(all, func(p part) bool { return p.Part != "postgresql" || strings.HasPrefix(p.Role, "primary") })
	}
	var all []part
	for end := time.Now().Add(patience); len(all) != 2 || all[0].State != ok || all[1].State != ok || !strings.HasSuffix(all[1].Role, "quorum"); { // until it has caught up
		if all = status(); time.Now().After(end) {
			t.Fatalf("never: two standbys in %+v", all)
		}
	}
	if all[0].Role != "standby" || all[1].Role != "standby standby_2, quorum" || all[1].Address != "127.0.0.1" || !strings.HasSuffix(all[1].Lag, "s") {
		t.Errorf("two standbys: %+v", all)
	}
	// It is another server's child: whoever started it is told of its end.
	if err := syscall.Kill(second.Pid, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); len(all) != 2 || all[1].Role != "standby standby_2"; {
		if all = status(); time.Now().After(end) {
			t.Fatalf("never: a standby that is gone in %+v", all)
		}
	}
	if all[1].State != warning || !slices.Equal(all[1].Wrong, []string{"is not connected"}) {
		t.Errorf("one is gone: %+v", all)
	}
	c.LinksReplicas = append(c.LinksReplicas, second.URL("curt"))
	// It ends its processes before its port is free.
	for end := time.Now().Add(patience); len(all) != 2 || all[1].State != failure || !slices.Equal(all[1].Wrong, []string{"refuses connections"}); {
		if all = status(); time.Now().After(end) {
			t.Fatalf("never: one is gone that is named: %+v", all)
		}
	}
}

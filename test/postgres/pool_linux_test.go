package postgres_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// figure waits until a metric of a server is as it should be, and returns it.
func figure(t *testing.T, s *curttest.Server, name string, right func(float64) bool) (value float64) {
	t.Helper()
	soon(t, fmt.Sprintf("%s at %s", name, s.Admin), func() bool {
		var found bool
		var err error
		value, found, err = s.Metric(t.Context(), name)
		return err == nil && found && right(value)
	})
	return value
}

// createMany creates links a thousand at a time, and fails if one has no code or that of another.
func createMany(t *testing.T, api *client.Client, thousands int, codes map[string]bool) {
	t.Helper()
	for range thousands {
		links := make([]client.NewLink, 1000)
		for i := range links {
			links[i].LongURL = fmt.Sprintf("https://example.com/%d", i)
		}
		results, err := api.CreateMany(t.Context(), links)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Link == nil || codes[r.Link.ShortCode] {
				t.Fatalf("created %+v, %+v; the code was there before: %v", r.Link, r.Problem, r.Link != nil && codes[r.Link.ShortCode])
			}
			codes[r.Link.ShortCode] = true
		}
	}
}

// TestThePoolOutlivesItsFiller: a server with the role keys fills the pool and is killed. What ten seconds of 1,000 creates
// a second use is created without it, and twice that, without a create that waits for keys. The server that creates is killed,
// too: what it held is leaked, as it says at its next start. Then the pool is filled again.
func TestThePoolOutlivesItsFiller(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	url := database(t)
	env := []string{"CURT_CODES=pool", "CURT_ANALYTICS=" + url, "CURT_LIMITS=default=off"}
	filler := begin(t, 1, url, append(env, "CURT_ROLE=keys")...)[0]
	if needs := readiness(t, filler); len(needs.Checks) != 2 || !needs.Checks["links"].Required {
		t.Errorf("/readyz of the role keys: %+v", needs)
	}
	figure(t, filler.Server, "curt_key_pool_keys", func(v float64) bool { return v >= 100_000 })
	server := begin(t, 1, url, append(env, "CURT_ROLE=redirect,api")...)[0]
	figure(t, server.Server, "curt_keys_in_memory", func(v float64) bool { return v > 9_000 })
	filler.Kill()

	codes := map[string]bool{}
	for range 20 {
		figure(t, server.Server, "curt_keys_in_memory", func(v float64) bool { return v >= 1000 }) // a busy machine may need a while for the next
		createMany(t, server.api, 1, codes)
	}
	if waited := figure(t, server.Server, "curt_code_leases_waited_total", func(float64) bool { return true }); waited != 0 {
		t.Errorf("%v creates waited for keys", waited)
	}
	// 30,000 keys were taken. The pool had 100,000, and up to 10,000 more where the filler replaced those in memory before it was
	// killed. A level above 85,000 was read before the creates.
	figure(t, server.Server, "curt_key_pool_keys", func(v float64) bool { return v >= 70_000 && v < 85_000 })
	// The server reads the level every five seconds. What it reads first may be of before the creates, and on a machine that
	// slept for a minute they are out of the window: then 1,000 more. Without a pause these would be as many as the pool has.
	created := time.Now()
	figure(t, server.Server, "curt_key_pool_runway_seconds", func(v float64) bool {
		if math.IsInf(v, 1) && time.Since(created) > 30*time.Second {
			createMany(t, server.api, 1, codes)
			created = time.Now()
		}
		return v > 30 && !math.IsInf(v, 1)
	})

	figure(t, server.Server, "curt_keys_in_memory", func(v float64) bool { return v > 9_000 })
	server.Kill()
	again := curttest.Start(t, curttest.Options{Data: server.Data, Env: append(env, "CURT_LINKS="+url, "CURT_ROLE=redirect,api")})
	leaked := figure(t, again, "curt_key_pool_leaked_keys", func(v float64) bool { return v > 0 })
	if leaked < 9_000 || leaked > 12_000 {
		t.Errorf("%v keys are leaked, of 10,000 in memory", leaked)
	}
	if !strings.Contains(again.Log(), "keys in memory were lost with the previous process") {
		t.Errorf("the log does not say that keys were lost:\n%s", again.Log())
	}
	begin(t, 1, url, append(env, "CURT_ROLE=keys")...)
	figure(t, again, "curt_key_pool_keys", func(v float64) bool { return v >= 100_000 })
	api, err := client.New("http://"+again.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	createMany(t, api, 2, codes)

	// A stop puts back what is in memory.
	if code, _ := again.Terminate(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, again.Log())
	}
	if held := scan(t, url, "SELECT coalesce(sum(size), 0) FROM used_keys WHERE held"); held != 0 {
		t.Errorf("after a stop %d keys are held", held)
	}
	if links, used := scan(t, url, "SELECT count(*) FROM links"), scan(t, url, "SELECT sum(size) - sum(leaked) FROM used_keys"); links != int64(len(codes)) || used > links {
		t.Errorf("%d links of %d creates, with %d keys that are neither unused nor leaked", links, len(codes), used)
	}
}

// scan returns a number out of a database.
func scan(t *testing.T, url, query string) (n int64) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err == nil {
		defer func() { _ = c.Close(t.Context()) }()
		err = c.QueryRow(t.Context(), query).Scan(&n)
	}
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// TestAnEmptyPoolIsToldFromAUsedSpace: without the role keys creates are 503, and 507 once all codes of the length are used.
func TestAnEmptyPoolIsToldFromAUsedSpace(t *testing.T) {
	t.Parallel()
	url := database(t)
	env := []string{"CURT_CODES=pool", "CURT_CODE_LENGTH=4", "CURT_ANALYTICS=" + url}
	server := begin(t, 1, url, append(env, "CURT_ROLE=redirect,api")...)[0]
	create := func() (status int, said string) {
		t.Helper()
		c := server.MustDial(t)
		defer c.Close()
		_, a, err := c.Create("https://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		return a.Status, string(a.Body)
	}
	if status, said := create(); status != 503 {
		t.Errorf("a create without keys: %d %s", status, said)
	}
	if said := readiness(t, server); said.Checks["keys"].Status == "ok" || said.Checks["keys"].Required || !strings.Contains(said.Checks["keys"].Detail, "role keys") {
		t.Errorf("/readyz: %+v", said)
	}
	if err := change(t, url, "INSERT INTO leases (counter, next) VALUES ('codes-4', 62^4::bigint - 7)"); err != nil {
		t.Fatal(err)
	}
	filler := begin(t, 1, url, append(env, "CURT_ROLE=keys")...)[0]
	made := 0
	for deadline := time.Now().Add(3 * time.Minute); ; {
		status, said := create()
		if status == 201 {
			made++
			continue
		}
		if status == 507 && strings.Contains(said, "all codes of the configured length are used") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d after %d links: %s", status, made, said)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if made != 7 {
		t.Errorf("%d links with the last 7 codes", made)
	}
	soon(t, "the role keys says that there are no further codes", func() bool {
		return strings.Contains(filler.Log(), "filling the pool of keys failed")
	})
}

// change runs a statement.
func change(t *testing.T, url, statement string) error {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(t.Context()) }()
	_, err = c.Exec(t.Context(), statement)
	return err
}

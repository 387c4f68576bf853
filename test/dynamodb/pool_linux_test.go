package dynamodb_test

import (
	"fmt"
	"strings"
	"testing"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// figure waits until a metric of a server is right.
func figure(t *testing.T, s *curttest.Server, name string, right func(float64) bool) {
	t.Helper()
	soon(t, name, func() bool {
		value, found, err := s.Metric(t.Context(), name)
		return err == nil && found && right(value)
	})
}

// TestKeysOfAPool: a server with the role keys fills the pool in the table, and another one creates links with what it
// took from there, on while the filler is dead. It is killed, too: what it held is leaked, and no code comes twice.
func TestKeysOfAPool(t *testing.T) {
	testkit.Faults(t)
	d := testkit.StartDynamoDB(t, false)
	accounts := testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	env := []string{
		"CURT_LINKS=" + d.URL("curt"), "CURT_ACCOUNTS=" + accounts, "CURT_ANALYTICS=" + accounts, "CURT_CODES=pool", "CURT_LIMITS=default=off",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true",
	}
	curttest.Migrate(t, env)
	keys := curttest.Start(t, curttest.Options{Env: append(env, "CURT_ROLE=keys")})
	figure(t, keys, "curt_key_pool_keys", func(v float64) bool { return v >= 100_000 })
	api := curttest.Start(t, curttest.Options{Env: append(env, "CURT_ROLE=redirect,api")})
	figure(t, api, "curt_keys_in_memory", func(v float64) bool { return v > 9_000 })
	keys.Kill()

	codes := map[string]bool{}
	create := func(s *curttest.Server, n int) {
		t.Helper()
		c, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
		if err != nil {
			t.Fatal(err)
		}
		links := make([]client.NewLink, n)
		for i := range links {
			links[i].LongURL = fmt.Sprintf("https://example.com/%d", i)
		}
		results, err := c.CreateMany(t.Context(), links)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Link == nil || codes[r.Link.ShortCode] {
				t.Fatalf("created %+v, %+v", r.Link, r.Problem)
			}
			codes[r.Link.ShortCode] = true
		}
	}
	create(api, 500)
	api.Kill()
	again := curttest.Start(t, curttest.Options{Data: api.Data, Env: append(env, "CURT_ROLE=redirect,api")})
	figure(t, again, "curt_key_pool_leaked_keys", func(v float64) bool { return v >= 9_000 && v <= 12_000 })
	soon(t, "the log says that keys were lost", func() bool {
		return strings.Contains(again.Log(), "keys in memory were lost with the previous process")
	})
	create(again, 500)
	if code, _ := again.Terminate(t); code != 0 { // what is in memory goes back
		t.Errorf("exit code %d\n%s", code, again.Log())
	}
	keys = curttest.Start(t, curttest.Options{Env: append(env, "CURT_ROLE=keys")})
	figure(t, keys, "curt_key_pool_held_keys", func(v float64) bool { return v == 0 })
}

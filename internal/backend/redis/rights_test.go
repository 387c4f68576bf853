package redis_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/backend/redis"
	"curt/internal/cache"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/testkit"
)

// documented are the rules that docs/backends.md gives the user of CURT_CACHE.
func documented(t *testing.T, cluster bool) (rules []string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^ACL SETUSER curt (?:on >PASSWORD )?(.+)$").FindAllSubmatch(page, -1)
	if len(lines) != 2 {
		t.Fatalf("docs/backends.md has %d lines of rules of Redis", len(lines))
	}
	rules = strings.Fields(string(lines[0][1]))
	if cluster {
		rules = append(rules, strings.Fields(string(lines[1][1]))...)
	}
	return rules
}

// as gives a user of nodes exactly these rules, and returns the URL with that user.
func as(t *testing.T, url string, rules []string, nodes ...*testkit.Redis) string {
	t.Helper()
	for _, n := range nodes {
		if said := n.Do(t, append([]string{"acl", "setuser", "curt", "reset", "on", ">secret"}, rules...)...); said != "OK" {
			t.Fatal(said)
		}
	}
	return strings.Replace(url, "redis://", "redis://curt:secret@", 1)
}

// TestTheDocumentedRightsSuffice runs all suites as a user who has no others.
func TestTheDocumentedRightsSuffice(t *testing.T) {
	r := testkit.StartRedis(t)
	url := as(t, r.URL(), documented(t, false), r)
	if what, err := redis.Probe(t.Context(), url); err != nil {
		t.Errorf("probe: %q, %v", what, err)
	}
	if left := r.Do(t, "keys", "*"); left != "" {
		t.Errorf("the probe left %s", left)
	}
	contracts(t, url)
	if refused := r.Do(t, "acl", "log"); refused != "" {
		t.Errorf("Redis refused something: %s", refused)
	}
}

func TestTheDocumentedRightsSufficeOnACluster(t *testing.T) {
	c := testkit.StartCluster(t)
	url := as(t, c.URL(), documented(t, true), c.Nodes...)
	if what, err := redis.Probe(t.Context(), url); err != nil {
		t.Errorf("probe: %q, %v", what, err)
	}
	everything(t, open(t, url, "rights"))
	for _, n := range c.Nodes {
		if refused := n.Do(t, "acl", "log"); refused != "" {
			t.Errorf("Redis refused something: %s", refused)
		}
	}
	for _, n := range c.Nodes { // each has users of its own, and one of them may know less
		if !strings.HasPrefix(n.Do(t, "role"), "master") {
			continue
		}
		n.Do(t, "acl", "setuser", "curt", "resetchannels")
		if _, err := redis.Probe(t.Context(), url); err == nil || !strings.Contains(err.Error(), "&curt:*") {
			t.Errorf("%s refuses channels, and nobody noticed: %v", n.Address, err)
		}
		n.Do(t, "acl", "setuser", "curt", "&curt:*")
	}
}

// everything does what a server does, once.
func everything(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- c.Subscribe(ctx, func() { close(begun) }, func(cache.Note) {}) }()
	select {
	case <-begun:
		defer func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
	case err := <-done:
		cancel()
		t.Fatal(err)
	}
	k := link.Key{Code: "a"}
	if err := errors.Join(c.Put(ctx, k, entry(1)), c.Publish(ctx, cache.Note{Head: link.Heads{1}})); err != nil {
		t.Error(err)
	}
	if _, found, err := c.Get(ctx, k); err != nil || !found {
		t.Errorf("get: %v, %v", found, err)
	}
	if _, err := c.Limiter().Spend(ctx, time.Now(), charge()); err != nil {
		t.Error(err)
	}
}

func charge() []ratelimit.Charge {
	return []ratelimit.Charge{{Bucket: "a/b", Limit: ratelimit.Per(1, time.Hour), Cost: 1}}
}

// TestEachMissingRightIsNamed takes every rule away by itself.
func TestEachMissingRightIsNamed(t *testing.T) {
	r := testkit.StartRedis(t)
	rules := documented(t, false)
	const write, count = "write links by a script (ACL: +eval +evalsha +getrange +set)", "count limits by a script (ACL: +eval +evalsha +time +get +set +del)"
	wants := map[string]string{
		"~curt:*": "use keys that begin with curt: (ACL: ~curt:*)", "&curt:*": "use channels that begin with curt: (ACL: &curt:*)",
		"+get": "read links (ACL: +get)", "+set": write, "+getrange": write, "+evalsha": write, "+eval": write, "+time": count, "+del": count,
		"+publish": "publish changes (ACL: +publish)", "+subscribe": "subscribe to changes (ACL: +subscribe)",
	}
	for rule, want := range wants {
		i := slices.Index(rules, rule)
		if i < 0 {
			t.Errorf("%s is not documented", rule)
			continue
		}
		r.Do(t, "script", "flush")
		url := as(t, r.URL(), slices.Delete(slices.Clone(rules), i, i+1), r)
		what, err := redis.Probe(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), "the user lacks the right to "+want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("without %s: %q, %v", rule, what, err)
		}
	}
}

// TestAMissingRightIsToldOnce takes rights from a client that runs, uses them meanwhile as
// often as visitors do, and gives them back.
func TestAMissingRightIsToldOnce(t *testing.T) {
	r := testkit.StartRedis(t)
	told := &testkit.Lines{}
	c, err := redis.New(redis.Config{
		URL: as(t, r.URL(), documented(t, false), r), Namespace: "rights", Key: key, Log: slog.New(slog.NewTextHandler(told, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, c.Patient().Watchful())
	everything(t, c)
	if err := c.Refused(); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	r.Do(t, "acl", "setuser", "curt", "resetkeys", "-publish")
	limiter := c.Limiter()
	for range 500 {
		if _, _, err := c.Get(t.Context(), link.Key{Code: "a"}); err == nil {
			t.Fatal("a key is read without the right")
		}
		_ = c.Put(t.Context(), link.Key{Code: "a"}, entry(1))
		_ = c.Publish(t.Context(), cache.Note{Head: link.Heads{1}})
		_, _ = limiter.Spend(t.Context(), time.Now(), charge())
	}
	if err := c.Healthy(); err != nil {
		t.Errorf("a server that answers counts as away: %v", err)
	}
	const want = "the user lacks the right to publish changes (ACL: +publish); the user lacks the right to use keys that begin with curt: (ACL: ~curt:*)"
	if all, ok := errors.AsType[redis.RightsError](c.Refused()); !ok || all.PublicMessage() != want {
		t.Errorf("%v, want %s", c.Refused(), want)
	}
	const warning, mended = "redis permission missing", "redis permissions restored"
	wait(t, "a word in the log about each", func() bool { return strings.Count(told.String(), warning) >= 2 })
	r.Do(t, "acl", "setuser", "curt", "~curt:*", "+publish")
	wait(t, "a word that it is mended", func() bool { return strings.Contains(told.String(), mended) })
	everything(t, c)
	if err := c.Refused(); err != nil {
		t.Errorf("with all rights again: %v", err)
	}
	if text := told.String(); strings.Count(text, warning) != 2 || strings.Contains(text, "does not answer") {
		t.Errorf("the log says:\n%s", text)
	}
}

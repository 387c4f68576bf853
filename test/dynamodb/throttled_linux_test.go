package dynamodb_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// requestTime bounds an answer, whatever the table does: a call of it ends within two seconds, and a
// create makes few; the rest is room for a busy machine.
const requestTime = time.Minute

// throttled is a fleet of two over a table that a proxy throttles.
type throttled struct {
	api, redirect *curttest.Server
	client        *client.Client
	proxy         *testkit.DynamoDBProxy
}

func startThrottled(t *testing.T) *throttled {
	t.Helper()
	d := testkit.StartDynamoDB(t, false)
	s := &throttled{proxy: testkit.StartDynamoDBProxy(t, d)}
	accounts := testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	env := []string{
		"CURT_LINKS=" + testkit.DynamoDBURL("curt", s.proxy.URL), "CURT_ACCOUNTS=" + accounts, "CURT_ANALYTICS=" + accounts, "CURT_CODES=range",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true",
	}
	curttest.Migrate(t, env)
	s.api = curttest.Start(t, curttest.Options{Env: append(env, "CURT_ROLE=api,worker")})
	s.redirect = curttest.Start(t, curttest.Options{Env: append(env, "CURT_ROLE=redirect")})
	var err error
	if s.client, err = client.New("http://"+s.api.Addr, client.WithKey(curttest.Key)); err != nil {
		t.Fatal(err)
	}
	return s
}

// refused creates a link that the table does not take.
func (s *throttled) refused(t *testing.T, body string) {
	t.Helper()
	c := s.api.MustDial(t)
	defer c.Close()
	began := time.Now()
	a, err := c.Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
	took := time.Since(began)
	kind, _ := a.Get("Content-Type")
	retry, _ := a.Get("Retry-After")
	if err != nil || a.Status != http.StatusServiceUnavailable || !strings.HasPrefix(kind, "application/problem+json") || retry == "" || took > requestTime {
		t.Errorf("a create of %s: %d after %s, %q, Retry-After %q, %s, %v", body, a.Status, took, kind, retry, a.Body, err)
	}
}

// TestAThrottledTable: while DynamoDB throttles all requests, links in memory are served, also past the
// time that they are fresh for; others are 503, never 404; creates are 503 with Retry-After, in time,
// and nothing of them is stored.
func TestAThrottledTable(t *testing.T) {
	testkit.Faults(t)
	s := startThrottled(t)
	create := func(l client.NewLink) client.Link {
		t.Helper()
		made, err := s.client.Create(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	known := create(client.NewLink{LongURL: "https://example.com/known"})
	unseen := []client.Link{create(client.NewLink{LongURL: "https://example.com/unseen"}), create(client.NewLink{LongURL: "https://example.com/unseen", CustomAlias: "unseen"})}
	served := func(l client.Link) {
		t.Helper()
		soon(t, l.ShortCode+" is served", func() bool {
			status, to, _ := get(t, s.redirect, "/"+l.ShortCode)
			return status == http.StatusFound && to == l.LongURL
		})
	}
	served(known)
	// What is in memory is fresh for minutes, but not past its expiry: the table is throttled by then.
	var expiring client.Link
	for lives, to := 20*time.Second, ""; to != "https://example.com/expiring"; lives *= 3 { // where it expired before it was there another lives longer
		ends := time.Now().Add(lives)
		expiring = create(client.NewLink{LongURL: "https://example.com/expiring", FallbackURL: "https://example.com/fallback", ExpiresAt: &ends})
		soon(t, expiring.ShortCode+" is served", func() (there bool) {
			var status int
			status, to, _ = get(t, s.redirect, "/"+expiring.ShortCode)
			return status == http.StatusFound
		})
	}
	all := testkit.DynamoDBThrottles()
	end := s.proxy.Breaks(func(testkit.DynamoDBRequest) *testkit.DynamoDBAnswer { return all[rand.IntN(len(all))] })
	defer end()
	soon(t, "the fallback of a link that expired", func() bool {
		status, to, _ := get(t, s.redirect, "/"+expiring.ShortCode)
		if status != http.StatusFound {
			t.Errorf("a link in memory: %d", status)
		}
		return to == "https://example.com/fallback"
	})
	soon(t, "it is served stale", func() bool {
		if status, to, _ := get(t, s.redirect, "/"+expiring.ShortCode); status != http.StatusFound || to != "https://example.com/fallback" {
			t.Errorf("a link in memory that is not fresh: %d to %s", status, to)
		}
		n, _, err := s.redirect.Metric(t.Context(), "curt_cache_stale_total")
		return err == nil && n > 0
	})
	if status, to, _ := get(t, s.redirect, "/"+known.ShortCode); status != http.StatusFound || to != known.LongURL {
		t.Errorf("a link in memory: %d to %s", status, to)
	}
	for _, code := range []string{unseen[0].ShortCode, unseen[1].ShortCode, "nobody-has-this", "Zz9zZ9z"} {
		began := time.Now()
		if status, _, retry := get(t, s.redirect, "/"+code); status != http.StatusServiceUnavailable || retry == "" || time.Since(began) > requestTime {
			t.Errorf("%s, which is not in memory: %d after %s, Retry-After %q", code, status, time.Since(began), retry)
		}
	}
	s.refused(t, `{"long_url":"https://example.com/throttled"}`)
	s.refused(t, `{"long_url":"https://example.com/throttled","custom_alias":"refused"}`)
	s.refused(t, `{"long_url":"https://example.com/throttled","dedupe":true}`)
	end()
	for _, l := range unseen {
		soon(t, l.ShortCode+" is served", func() bool {
			status, to, _ := get(t, s.redirect, "/"+l.ShortCode)
			return status == http.StatusFound && to == l.LongURL
		})
	}
	soon(t, "an unknown code is 404", func() bool {
		status, _, _ := get(t, s.redirect, "/nobody-has-this")
		return status == http.StatusNotFound
	})
	create(client.NewLink{LongURL: "https://example.com/again", CustomAlias: "refused"}) // nothing of it was stored
}

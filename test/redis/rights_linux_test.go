package redis_test

import (
	"net/http"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// TestARefusedRightIsNoOutage: a server whose user may not use keys any more follows links
// and stays ready, and says once what is missing.
func TestARefusedRightIsNoOutage(t *testing.T) {
	t.Parallel()
	f := gather(t, 2, "")
	codes, last := f.make(t, 40), f.servers[1]
	v := f.visitors(t)[1]
	f.redis.Do(t, "acl", "setuser", "default", "resetkeys")
	for _, code := range codes {
		if got := v.asks(code); got != http.StatusFound {
			t.Errorf("%s is answered %d", code, got)
		}
	}
	told := func() string {
		c, err := curttest.Dial(t.Context(), last.Admin)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a, err := c.Do("GET", "/readyz", nil, "")
		if err != nil || a.Status != http.StatusOK {
			t.Errorf("/readyz: %d, %v", a.Status, err)
		}
		return string(a.Body)
	}
	const want = `"redis":{"status":"unavailable","required":false,"detail":"the user lacks the right to use keys that begin with curt: (ACL: ~curt:*)"}`
	within(t, "word about it", func() bool { return strings.Contains(told(), want) })
	within(t, "warning", func() bool { return strings.Contains(last.Log(), "redis permission missing") })
	f.redis.Do(t, "acl", "setuser", "default", "~*")
	within(t, "word that it is mended", func() bool { return strings.Contains(told(), `"redis":{"status":"ok","required":false}`) })
	if n := strings.Count(last.Log(), "redis permission missing"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, last.Log())
	}
}

package postgres_test

import (
	"fmt"
	"testing"

	"curt/internal/backend/postgres"
	"curt/internal/expiry/expirytest"
	"curt/internal/link"
)

func expires(t *testing.T, d *databases) {
	open := func(t testing.TB, url string) expirytest.Store {
		s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		d.urls.Store(s, url)
		return s
	}
	urlOf := func(s expirytest.Store) string {
		url, _ := d.urls.Load(s)
		return url.(string)
	}
	expirytest.Run(t, expirytest.Harness{
		Open:  func(t testing.TB) expirytest.Store { return open(t, d.front.URL(d.server.Copy(t, template))) },
		Again: func(t testing.TB, s expirytest.Store) expirytest.Store { return open(t, urlOf(s)) },
		Late: func(t testing.TB, s expirytest.Store, of, code link.Code) (commit func()) {
			return uncommitted(t, urlOf(s), fmt.Sprintf(`CREATE TEMP TABLE late AS SELECT * FROM links WHERE code = '%s'`, of),
				fmt.Sprintf(`UPDATE late SET code = '%s', place = place + 1, id = '00000000-0000-7000-8000-000000000001', made = pg_current_xact_id()`, code),
				`INSERT INTO links SELECT * FROM late`)
		},
	})
}

package postgres_test

import (
	"errors"
	"testing"

	"curt/internal/backend/postgres"
)

// cutCodeKey has codes made by no other key than the whole one: with a part of it, those that
// are given out could be given out again later.
func cutCodeKey(t *testing.T, d *databases) {
	url := d.server.URL(d.server.Copy(t, template))
	for _, value := range []string{"substr(value, 1, 31)", "value || '\\x00'::bytea || value", "''::bytea"} {
		exec(t, url, "UPDATE settings SET value = "+value+" WHERE name = 'code_key'")
		s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url})
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, postgres.ErrUnfit) {
			t.Errorf("%s: %v, want ErrUnfit", value, err)
		}
	}
}

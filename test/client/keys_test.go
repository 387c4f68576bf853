package client_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"curt.example/client"
)

func TestKeysAreMadeRotatedAndRevoked(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if _, err := io.WriteString(w, `{"id":"7","name":"CI","key":"curt_x","keys":[{"id":"7"}],"next_cursor":"n","expires_at":null}`); err != nil {
			t.Error(err)
		}
	})
	made, err := c.Keys.Create(t.Context(), client.NewKey{Name: "CI", Scopes: []string{"links:read"}})
	if err != nil || made.ID != "7" || made.Secret != "curt_x" || made.Name != "CI" {
		t.Errorf("Keys.Create = %+v, %v", made, err)
	}
	if rotated, err := c.Keys.Rotate(t.Context(), "7", 90*time.Second); err != nil || rotated.Secret != "curt_x" {
		t.Errorf("Keys.Rotate = %+v, %v", rotated, err)
	}
	if k, err := c.Keys.Get(t.Context(), "7"); err != nil || k.ID != "7" || k.ExpiresAt != nil {
		t.Errorf("Keys.Get = %+v, %v", k, err)
	}
	if page, err := c.Keys.List(t.Context(), "acme", "c", 2); err != nil || len(page.Keys) != 1 || page.NextCursor != "n" {
		t.Errorf("Keys.List = %+v, %v", page, err)
	}
	if err := c.Keys.Revoke(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	want := []string{
		`POST /api/v1/keys {"name":"CI","scopes":["links:read"]}`, `POST /api/v1/keys/7/rotate {"overlap":90}`, "GET /api/v1/keys/7 ",
		"GET /api/v1/keys?cursor=c&limit=2&workspace_id=acme ", "DELETE /api/v1/keys/a%2Fb ",
	}
	for i := range want {
		if i >= len(asked) || asked[i] != want[i] {
			t.Errorf("request %d: got %q, want %q", i, asked, want[i])
		}
	}
}

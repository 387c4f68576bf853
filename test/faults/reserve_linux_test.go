package faults_test

import (
	"errors"
	"net/http"
	"testing"

	"curt.example/client"
	"curt/test/internal/curttest"
)

// TestKillLosesNoReservation kills the server right after it has reserved an alias: the next start respects that.
func TestKillLosesNoReservation(t *testing.T) {
	t.Parallel()
	o := curttest.Options{Data: t.TempDir()}
	s := curttest.Start(t, o)
	connect := func(key string) *client.Client {
		t.Helper()
		c, err := client.New("http://"+s.Addr, client.WithKey(key))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	other, err := connect(curttest.Key).Keys.Create(t.Context(), client.NewKey{Name: "rival", Scopes: []string{"links:write"}, WorkspaceID: "rival"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := connect(curttest.Key).Aliases.Reserve(t.Context(), "sale", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s = curttest.Start(t, o)
	_, err = connect(other.Secret).Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "sale"})
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusConflict || !p.Until.Equal(r.ReservedUntil) {
		t.Errorf("a create by another: %v", err)
	}
	again, err := connect(curttest.Key).Aliases.Reserve(t.Context(), "sale", "")
	if err != nil || !again.ReservedUntil.Equal(r.ReservedUntil) {
		t.Errorf("reserved again: %+v, %v", again, err)
	}
	if _, err := connect(curttest.Key).Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "sale"}); err != nil {
		t.Errorf("a create by the holder: %v", err)
	}
}

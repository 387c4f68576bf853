package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"curt.example/client"
)

func TestLinkOptionsSayWhichLinkAndWhen(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("domain") != "s.example" || r.Header.Get("If-Match") != `"3"` {
			t.Errorf("%s, If-Match %q", r.URL, r.Header.Get("If-Match"))
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if err := c.Delete(t.Context(), "x", client.OnDomain("s.example"), client.IfVersion(3)); err != nil {
		t.Error(err)
	}
}

func TestWithoutAnAnswerTheErrorSaysSo(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "x"); !errors.Is(err, client.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
}

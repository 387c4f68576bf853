package client_test

import (
	"io"
	"net/http"
	"testing"

	"curt.example/client"
)

func TestQRIsWhatTheServerDrew(t *testing.T) {
	var asked string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		_, _ = io.WriteString(w, "\x89PNG")
	})
	none := 0
	got, err := c.QR(t.Context(), "a/b", client.QRQuery{Domain: "go.example", Format: "png", Size: 100, Margin: &none, Level: "H", Foreground: "000001", Background: "fffffe"})
	if err != nil || string(got) != "\x89PNG" {
		t.Errorf("%q, %v", got, err)
	}
	if want := "/api/v1/links/a%2Fb/qr?bg=fffffe&domain=go.example&fg=000001&format=png&level=H&margin=0&size=100"; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	if _, err := c.QR(t.Context(), "x", client.QRQuery{}); err != nil || asked != "/api/v1/links/x/qr" {
		t.Errorf("asked %s: %v", asked, err)
	}
}

func TestQRTextIsTheShortURLWithTheTrigger(t *testing.T) {
	var asked string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		_, _ = io.WriteString(w, `{"short_url":"https://go.example/x"}`)
	})
	got, err := c.QRText(t.Context(), "x", "go.example")
	if err != nil || got != "https://go.example/x?qr=1" || asked != "/api/v1/links/x?domain=go.example" {
		t.Errorf("%q, %v, asked %s", got, err, asked)
	}
}

package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"curt/internal/link"
)

// forgetful is a store that acknowledges and keeps nothing, so that the handler
// alone is measured.
type forgetful struct{ link.Store }

func (forgetful) Create(_ context.Context, l link.Link) (link.Link, error) {
	l.Version = 1
	return l, nil
}

// discard is a ResponseWriter that only counts.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkCreate is one create through the handler, without net/http and without
// a durable store: JSON in and out, URL, authentication, rules, id.
func BenchmarkCreate(b *testing.B) {
	s := newService(b, func(p *parts) { p.store = forgetful{} })
	bodies := map[string]string{
		"plain": `{"long_url":"https://www.example.com/articles/2026/how-links-are-shortened?utm_source=mail"}`,
		"full": `{"long_url":"https://www.example.com/a?b=c","custom_alias":"spring-sale","expires_at":"2027-01-01T00:00:00Z",` +
			`"redirect_status":301,"title":"Spring sale","tags":["spring","sale"],"noindex":false}`,
	}
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			reader := strings.NewReader(body)
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/v1/links", reader)
			r.Header.Set("Authorization", "Bearer admin")
			r.Header.Set("Content-Type", "application/json")
			w := &discard{header: http.Header{}}
			for b.Loop() {
				reader.Reset(body)
				clear(w.header)
				s.ServeHTTP(w, r)
				if w.status != http.StatusCreated {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// BenchmarkCreateOverHTTP is the same through net/http and 64 connections whose
// client does the least that a client can, on the same cores.
func BenchmarkCreateOverHTTP(b *testing.B) {
	s := newService(b, func(p *parts) { p.store = forgetful{} })
	server := httptest.NewServer(s)
	defer server.Close()
	body := `{"long_url":"https://www.example.com/articles/2026/how-links-are-shortened?utm_source=mail"}`
	request := fmt.Appendf(nil, "POST /api/v1/links HTTP/1.1\r\nHost: curt.test\r\nAuthorization: Bearer admin\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	b.ReportAllocs()
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(b.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = conn.Close() }() // every answer was read
		answer := make([]byte, 4096)
		for pb.Next() {
			if _, err := conn.Write(request); err != nil {
				b.Error(err)
				return
			}
			n, err := conn.Read(answer)
			if err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 201 ")) || !bytes.HasSuffix(answer[:n], []byte("}")) {
				b.Errorf("%v: %s", err, answer[:n])
				return
			}
		}
	})
}

// BenchmarkNew is what the API adds to the start of the server.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newService(b)
	}
}

// BenchmarkGet is one look at a link through the handler.
func BenchmarkGet(b *testing.B) {
	s := newService(b)
	created := s.create(b, "admin", `{"long_url":"https://www.example.com/articles/2026?utm_source=mail"}`)
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, fmt.Sprintf("/api/v1/links/%s", created["short_code"]), http.NoBody)
	r.Header.Set("Authorization", "Bearer admin")
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
}

package figures

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"sync"

	"curt/bench/internal/bare"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/traffic"
)

// Creates makes links, each with a URL of its own, with the admin key. Rate 0 is
// a closed loop.
func Creates(addr netip.AddrPort, path string, conns int, rate float64) load.Stream {
	head := "POST " + path + " HTTP/1.1\r\nHost: " + addr.String() + "\r\nAuthorization: Bearer " + AdminKey +
		"\r\nContent-Type: application/json\r\nContent-Length: "
	urls, index := traffic.NewURLs(), rand.Uint64N(1<<40)
	var body []byte
	return load.Stream{
		Name: "creates", Addr: addr, Conns: conns, Rate: rate, Want: http.StatusCreated,
		Next: func(b []byte) []byte {
			index++
			body = append(urls.Append(append(body[:0], `{"long_url":"`...), index), `"}`...)
			b = strconv.AppendInt(append(b, head...), int64(len(body)), 10)
			return append(append(b, "\r\n\r\n"...), body...)
		},
	}
}

// Redirects asks for codes as browsers do.
func Redirects(addr netip.AddrPort, conns int, rate float64, code func(*rand.Rand) string) load.Stream {
	visitors, random := traffic.NewVisitors(), rand.New(rand.NewPCG(rand.Uint64(), 2))
	host := " HTTP/1.1\r\nHost: " + addr.String()
	return load.Stream{
		Name: "redirects", Addr: addr, Conns: conns, Rate: rate, Want: http.StatusFound,
		Next: func(b []byte) []byte {
			v := visitors.Draw(random)
			b = append(append(append(b, "GET /"...), code(random)...), host...)
			b = field(b, "\r\nUser-Agent: ", v.UserAgent)
			b = field(b, "\r\nReferer: ", v.Referrer)
			b = field(b, "\r\nAccept-Language: ", v.Language)
			return append(b, "\r\nAccept: text/html,*/*;q=0.8\r\n\r\n"...)
		},
	}
}

// field appends a header that may not be there.
func field(b []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	return append(append(b, name...), value...)
}

// Get is a request with a key.
func Get(s *process.Server, path, key string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, s.Addr, key)
}

// Post is a request with the admin key.
func Post(s *process.Server, path string, body []byte) []byte {
	return append(fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		path, s.Addr, AdminKey, len(body)), body...)
}

// Popular draws codes by Zipf's law.
func Popular(n int, code func(i int) string) func(*rand.Rand) string {
	zipf := traffic.NewZipf(n)
	return func(r *rand.Rand) string { return code(zipf.Rank(r)) }
}

// Seed makes n links over HTTP and returns their codes.
func Seed(ctx context.Context, s *process.Server, n int) ([]string, error) {
	codes, errs := make([]string, n), make([]error, 16)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			urls := traffic.NewURLs()
			for i := w; i < n && errs[w] == nil; i += len(errs) {
				codes[i], errs[w] = CreateOne(ctx, s.Addr, string(urls.Append(nil, uint64(i))))
			}
		})
	}
	wg.Wait()
	return codes, errors.Join(errs...)
}

// CreateOne creates a link over HTTP and returns its code.
func CreateOne(ctx context.Context, addr netip.AddrPort, long string) (string, error) {
	body, err := json.Marshal(map[string]string{"long_url": long})
	if err != nil {
		return "", fmt.Errorf("create a link: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr.String()+bare.CreatePath, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("create a link: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+AdminKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("create a link: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return "", fmt.Errorf("create a link: %w", err)
	}
	var l struct {
		Code string `json:"short_code"`
	}
	if res.StatusCode != http.StatusCreated || json.Unmarshal(answer, &l) != nil || l.Code == "" {
		return "", fmt.Errorf("create a link: %s: %s", res.Status, answer)
	}
	return l.Code, nil
}

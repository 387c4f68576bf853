package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"curt/bench/internal/process"
)

const (
	key = "curt_bench_0123456789abcdefghijklmnop"
	// from is another network than the attack's.
	from = "127.9.0.1"
	// staying are connections that are kept for many visits.
	staying = 8
	// bound is how long a visitor waits.
	bound = 10 * time.Second
)

// site is a server that is measured.
type site struct {
	process        *process.Server
	folder         string
	address, admin string
	secure         bool
	code           string
}

// serve starts a server with one link.
func (c config) serve(ctx context.Context, k kind) (*site, error) {
	folder, err := os.MkdirTemp(c.temp, "bench-unfinished-")
	if err != nil {
		return nil, err
	}
	admin, err := free()
	if err != nil {
		return nil, err
	}
	env := append([]string{
		"CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN=" + admin, "CURT_DATA=" + filepath.Join(folder, "data"),
		"CURT_ADMIN_KEY=" + key, "CURT_LANE=" + c.lane, "CURT_UNKNOWN_LIMIT=off",
	}, k.env...)
	if k.tls {
		files, err := certificate(folder)
		if err != nil {
			return nil, err
		}
		env = append(env, files...)
	}
	p, err := process.Start(ctx, process.Command{Path: c.curt, Args: []string{"serve"}, Env: env, Core: -1})
	if err != nil {
		return nil, err
	}
	s := &site{process: p, folder: folder, address: p.Addr.String(), admin: admin, secure: k.tls}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *site) stop() error { return errors.Join(s.process.Stop(), os.RemoveAll(s.folder)) }

func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends at once
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func certificate(folder string) ([]string, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	err = errors.Join(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
	return []string{"CURT_TLS_CERT=" + certFile, "CURT_TLS_KEY=" + keyFile}, err
}

// create makes the link that visitors follow.
func (s *site) create(ctx context.Context) error {
	scheme := "http"
	if s.secure {
		scheme = "https"
	}
	body := strings.NewReader(`{"long_url":"https://example.com/"}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+s.address+"/api/v1/links", body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // a certificate of our own
	a, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	var made struct {
		Code string `json:"short_code"`
	}
	if err := json.NewDecoder(a.Body).Decode(&made); err != nil || made.Code == "" {
		return fmt.Errorf("create a link: %s, %w", a.Status, err)
	}
	s.code = made.Code
	return nil
}

// visits are what visitors found.
type visits struct {
	took   []time.Duration // of those that were answered
	failed int
}

func (v visits) answered() float64 { return float64(len(v.took)) / float64(len(v.took)+v.failed) }

func (v visits) p99() float64 {
	if len(v.took) == 0 {
		return bound.Seconds() * 1e3
	}
	slices.Sort(v.took)
	return v.took[len(v.took)*99/100].Seconds() * 1e3
}

// visits asks for the link at a steady pace, half on connections that stay, half on new
// ones, of which connecting counts. Time runs from when a visit was due.
func (s *site) visits(ctx context.Context, rate int, window time.Duration) (visits, error) {
	var mu sync.Mutex
	var all visits
	var done sync.WaitGroup
	note := func(began time.Time, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			all.failed++
			return
		}
		all.took = append(all.took, time.Since(began))
	}
	begin, pace := time.Now(), time.Second/time.Duration(rate/2)
	for n := range staying {
		done.Go(func() {
			var nc net.Conn
			for due := begin.Add(time.Duration(n) * pace); time.Since(begin) < window; due = due.Add(staying * pace) {
				time.Sleep(time.Until(due))
				var err error
				if nc == nil {
					nc, err = s.dial(ctx)
				}
				if err == nil {
					err = s.visit(nc)
				}
				if note(due, err); err != nil && nc != nil {
					_ = nc.Close()
					nc = nil
				}
			}
		})
	}
	for due := begin.Add(pace / 2); time.Since(begin) < window; due = due.Add(pace) {
		time.Sleep(time.Until(due))
		done.Go(func() {
			nc, err := s.dial(ctx)
			if err == nil {
				err = s.visit(nc)
				_ = nc.Close()
			}
			note(due, err)
		})
	}
	done.Wait()
	return all, ctx.Err()
}

func (s *site) dial(ctx context.Context) (net.Conn, error) {
	nc, err := dialer(from).DialContext(ctx, "tcp", s.address)
	if err != nil || !s.secure {
		return nc, err
	}
	return tls.Client(nc, &tls.Config{InsecureSkipVerify: true}), nil //nolint:gosec // a certificate of our own
}

func (s *site) visit(nc net.Conn) error {
	if err := nc.SetDeadline(time.Now().Add(bound)); err != nil {
		return err
	}
	if _, err := io.WriteString(nc, "GET /"+s.code+" HTTP/1.1\r\nHost: "+s.address+"\r\n\r\n"); err != nil {
		return err
	}
	a, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, a.Body)
	if a.StatusCode != http.StatusFound {
		err = errors.New(a.Status)
	}
	return errors.Join(err, a.Body.Close())
}

// metric reads one from the operator's listener.
func (s *site) metric(ctx context.Context, name string) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(a.Body)
	if err = errors.Join(err, a.Body.Close()); err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if value, ok := strings.CutPrefix(string(line), name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("no metric " + name)
}

// watch looks at the memory until it is told to stop, and then tells the most, and how many
// connections there were in the middle.
func (s *site) watch(ctx context.Context) (stop func() (memory int64, held float64, err error)) {
	ended, over := make(chan struct{}), make(chan struct{})
	var most int64
	var held []float64
	var failed error
	go func() {
		defer close(over)
		for failed == nil {
			now, err := process.RSS(s.process.PID)
			open, err2 := s.metric(ctx, "curt_lane_connections")
			away, err3 := s.metric(ctx, "curt_lane_foreign_connections")
			failed = errors.Join(err, err2, err3)
			most, held = max(most, now), append(held, open+away)
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() (int64, float64, error) {
		close(ended)
		<-over
		slices.Sort(held)
		return most, held[len(held)/2], failed
	}
}

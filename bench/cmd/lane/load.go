package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"curt/bench/internal/fill"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/traffic"
)

// bench loads servers and compares them.
type bench struct {
	*launcher

	cold  int // links beside codes, for misses
	asked int // of them, so far
}

func newBench(ctx context.Context, c config, folder string) (*bench, error) {
	b := &bench{launcher: &launcher{cfg: c, folder: folder}}
	var err error
	if c.mixed || c.table {
		b.cold = int(1000 * (c.mixedFor + time.Minute).Seconds()) // 1 % of 100,000/s
	}
	if b.links, err = fill.Fill(ctx, filepath.Join(folder, "links"), c.links+b.cold, os.Stderr); err != nil {
		return nil, err
	}
	for i := range c.links {
		b.codes = append(b.codes, string(b.links.Code(i)))
	}
	return b, b.index(ctx)
}

// browserFields are those that browsers send beside what tells visitors apart.
const browserFields = "\r\nConnection: keep-alive\r\nsec-ch-ua: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0" +
	"\r\nsec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8" +
	"\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\nAccept-Encoding: gzip, deflate, br, zstd"

// redirects asks for the links as browsers do. Rate 0 is a closed loop.
func (b *bench) redirects(addr netip.AddrPort, conns int, rate float64) load.Stream {
	visitors, random := traffic.NewVisitors(), rand.New(rand.NewPCG(rand.Uint64(), 2))
	var zipf *traffic.Zipf
	if b.cfg.zipf {
		zipf = traffic.NewZipf(len(b.codes))
	}
	host := " HTTP/1.1\r\nHost: localhost:" + strconv.Itoa(int(addr.Port()))
	want := http.StatusFound
	return load.Stream{
		Name: "redirects", Addr: addr, Conns: conns, Rate: rate, Wants: func() int { return want },
		Next: func(r []byte) []byte {
			i := 0
			if zipf != nil {
				i = zipf.Rank(random)
			} else {
				i = random.IntN(len(b.codes))
			}
			v := visitors.Draw(random)
			r, want = b.target(append(r, "GET /"...), b.codes[i], random)
			r = append(r, host...)
			r = append(r, browserFields...)
			r = field(r, "\r\nUser-Agent: ", v.UserAgent)
			r = field(r, "\r\nReferer: ", v.Referrer)
			r = field(r, "\r\nAccept-Language: ", v.Language)
			return append(r, "\r\n\r\n"...)
		},
	}
}

// target appends a code, or with mixed one that is in no cache (1 %), one that was never
// made (1 %), or a call of the API (0.1 %), and returns the status that answers it.
func (b *bench) target(r []byte, code string, random *rand.Rand) ([]byte, int) {
	if !b.cfg.mixed {
		return append(r, code...), http.StatusFound
	}
	switch n := random.IntN(1000); {
	case n < 10:
		b.asked = (b.asked + 1) % b.cold
		return append(r, b.links.Code(b.cfg.links+b.asked)...), http.StatusFound
	case n < 20:
		return fmt.Appendf(r, "x%09x", random.Uint64()>>28), http.StatusNotFound
	case n == 20:
		return append(append(append(r, "api/v1/links/"...), code...), " HTTP/1.1\r\nAuthorization: Bearer "+adminKey+"\r\nX-Was:"...), http.StatusOK
	}
	return append(r, code...), http.StatusFound
}

// idle prints what connections cost that had an answer and wait.
func (b *bench) idle(ctx context.Context, s *server, out io.Writer) (each float64, err error) {
	before, err := process.RSS(s.process.PID)
	if err != nil {
		return 0, err
	}
	var all []net.Conn
	defer func() {
		for _, nc := range all {
			err = errors.Join(err, nc.Close())
		}
	}()
	answer := make([]byte, 4<<10)
	for i := range b.cfg.idle {
		nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.process.Addr.String())
		if err != nil {
			return 0, fmt.Errorf("open connection %d: %w", i, err)
		}
		all = append(all, nc)
		request := "GET /" + b.codes[i%len(b.codes)] + " HTTP/1.1\r\nHost: localhost" + browserFields + "\r\n\r\n"
		if _, err := io.WriteString(nc, request); err != nil {
			return 0, fmt.Errorf("ask on connection %d: %w", i, err)
		}
		if _, err := nc.Read(answer); err != nil {
			return 0, fmt.Errorf("answer on connection %d: %w", i, err)
		}
	}
	after, err := process.RSS(s.process.PID)
	if err != nil {
		return 0, err
	}
	each = float64(after-before) / float64(b.cfg.idle)
	_, err = fmt.Fprintf(out, "%d idle connections: %.2f KiB each; %d MiB before, %d MiB after\n", b.cfg.idle, each/1024, before>>20, after>>20)
	return each, err
}

func field(b []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	return append(append(b, name...), value...)
}

// warm asks each server for every link once, so that all are hits from then on.
func (b *bench) warm(ctx context.Context, servers []*server) error {
	for _, s := range servers {
		i := 0
		stream := b.redirects(s.process.Addr, b.cfg.conns, 0)
		stream.Want, stream.Wants = http.StatusFound, nil
		host := " HTTP/1.1\r\nHost: localhost\r\n\r\n"
		stream.Next = func(r []byte) []byte {
			i = (i + 1) % len(b.codes)
			return append(append(append(r, "GET /"...), b.codes[i]...), host...)
		}
		for total := uint64(0); total < uint64(len(b.codes)); {
			o, err := load.Run(ctx, load.Plan{Streams: []load.Stream{stream}, Measure: 500 * time.Millisecond})
			if err := errors.Join(err, o.Wrong()); err != nil {
				return fmt.Errorf("warm %s: %w", s.name, err)
			}
			total += o.Answered()
		}
	}
	return nil
}

// profile takes a CPU profile of the first curt under the load.
func (b *bench) profile(ctx context.Context, servers []*server) error {
	if b.cfg.profile == "" {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.admin+"/debug/pprof/profile?seconds=5", http.NoBody)
		if err != nil {
			done <- err
			return
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			done <- err
			return
		}
		body, err := io.ReadAll(bufio.NewReader(res.Body))
		done <- errors.Join(err, res.Body.Close(), os.WriteFile(b.cfg.profile, body, 0o600))
	}()
	_, err := load.Run(ctx, load.Plan{
		Streams: []load.Stream{b.redirects(servers[0].process.Addr, b.cfg.conns, 0)}, Measure: 6 * time.Second,
	})
	return errors.Join(err, <-done)
}

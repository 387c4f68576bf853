package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/report"
	"curt/bench/internal/service"
	"curt/bench/internal/traffic"
	"curt/internal/backend/redis"
	"curt/internal/cache"
	"curt/internal/link"
)

const (
	million    = 1_000_000
	putWorkers = 64
)

// memory fills a Redis with a million links and reads what it takes.
func memory(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	server, err := service.Start(ctx, script, filepath.Dir(b.Config.Temp), "redis", "alone")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	c, err := redis.New(redis.Config{URL: "redis://" + server.Addr, Namespace: "0123456789ab"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var owned sync.WaitGroup
	owned.Go(func() { _ = c.Run(ctx) }) // it ends without an error
	defer func() {
		cancel()
		owned.Wait()
		err = errors.Join(err, c.Close())
	}()
	for c.Healthy() != nil {
		if err := figures.Pause(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
	before, err := usedMemory(ctx, server.Addr)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := putMany(ctx, c, million); err != nil {
		return nil, err
	}
	b.Say("a million links put in %.1f s", time.Since(begin).Seconds())
	after, err := usedMemory(ctx, server.Addr)
	if err != nil {
		return nil, err
	}
	return []report.Row{{Figure: "memory of Redis for a million links of 80 to 120 bytes", Unit: report.Megabytes, Values: []float64{(after - before) / 1e6}}}, nil
}

// putMany puts links as servers do: each by itself. A put that the machine made late is
// made again.
func putMany(ctx context.Context, c *redis.Client, n int) error {
	errs := make([]error, putWorkers)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			urls := traffic.NewURLs()
			for i := w; i < n && ctx.Err() == nil; i += putWorkers {
				e := cache.Entry{
					Target: link.Target{
						Destination: string(urls.Append(nil, uint64(i))), Version: 1, Status: link.Active, Safety: link.Clean, Redirect: 302, NoIndex: true,
					},
					AsOf: link.Heads{link.Sequence(100_000 + i/10)}, Until: time.Now().Add(24 * time.Hour), Cost: time.Millisecond,
				}
				k := link.Key{Code: link.Code(fmt.Sprintf("%07d", i))}
				for tries := 0; ; tries++ {
					if errs[w] = c.Put(ctx, k, e); errs[w] == nil || tries == 100 {
						break
					}
					_ = figures.Pause(ctx, 20*time.Millisecond) // its end is seen above
				}
				if errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// usedMemory asks a Redis server for the bytes that it has allocated.
func usedMemory(ctx context.Context, addr string) (float64, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, fmt.Errorf("ask Redis for its memory: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing is lost with it
	if _, err := conn.Write([]byte("INFO memory\r\n")); err != nil {
		return 0, fmt.Errorf("ask Redis for its memory: %w", err)
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "used_memory:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(v), 64)
		}
	}
	return 0, errors.Join(errors.New("no used_memory in the INFO of Redis"), lines.Err())
}

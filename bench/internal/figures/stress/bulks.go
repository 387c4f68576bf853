package stress

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"curt/bench/internal/bare"
	"curt/bench/internal/figures"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	bulksAtOnce   = 100
	bulksRate     = 500 // redirects a second meanwhile
	bulksLeast    = 10  // ms: what p99 may be however fast redirects are alone
	bulksMemory   = 128 // MB: what the server may take more
	bulkURL       = 7_900
	memoryLookups = 20 * time.Millisecond
)

// Bulks returns the figures of many large lists of links at once.
func Bulks() []figures.Figure { return []figures.Figure{{Name: "bulks", Take: bulks}} }

// bulks measures redirects alone, beside lists that lack their last byte, and beside whole ones;
// and what the server takes of the memory at its peak, beyond what it took before.
func bulks(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	list := longList()
	beside := func(name string, body []byte, announced int) figures.Turn {
		return b.OnEmpty(name, -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
			return besideBulks(ctx, b, s, body, announced)
		})
	}
	all, err := b.Rounds(ctx, beside("redirects alone", nil, 0),
		beside("unfinished bulks", list[:len(list)-1], len(list)), beside("finished bulks", list, len(list)))
	if err != nil {
		return nil, err
	}
	alone := all[0].Quantile(0, 0.99)
	more := func(s figures.Series) []float64 {
		return s.Values(func(r figures.Sample) float64 { return float64(r.RSS-r.RSSFirst) / 1e6 })
	}
	var rows []report.Row
	for i, what := range []string{"unfinished", "whole"} {
		s, name := all[i+1], fmt.Sprintf("%d %s bulks of %.0f MB", bulksAtOnce, what, float64(len(list))/1e6)
		rows = append(rows,
			report.Row{
				Figure: "redirect p99 beside " + name, Unit: report.Milliseconds, Values: s.Quantile(0, 0.99), Broken: s.Broken(),
				Bases: []report.Base{{Name: "redirects alone", Values: alone}}, Bar: report.Bar{AtMost: max(bulksLeast, 2*report.Median(alone))},
			},
			report.Row{
				Figure: "memory more at the peak of " + name, Unit: report.Megabytes, Values: more(s), Bar: report.Bar{AtMost: bulksMemory},
				Bases: []report.Base{{Name: "redirects alone", Values: more(all[0])}},
			})
	}
	return rows, nil
}

// longList is a body of 1,000 links, as large as one may be.
func longList() []byte {
	long := strings.Repeat("x", bulkURL)
	var b bytes.Buffer
	b.WriteString(`{"links":[`)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"long_url":"https://example.com/%d/%s","fallback_url":"https://example.com/%s"}`, i, long, long)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// besideBulks drives redirects, and when they are warm sends body on many connections; nil = it
// does not.
func besideBulks(ctx context.Context, b *figures.Bench, s *process.Server, body []byte, announced int) (r figures.Sample, err error) {
	codes, err := figures.Seed(ctx, s, figures.Seeded)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first, peak int64
	var answers sync.Map // by status, of *atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() {
		if figures.Pause(ctx, b.Config.Warmup) != nil {
			return
		}
		first, _ = process.RSS(s.PID) // 0 shows in the table
		peak = first
		if body != nil {
			for range bulksAtOnce {
				all.Go(func() { sendBulk(ctx, s.Addr.String(), body, announced, &answers) })
			}
		}
		for figures.Pause(ctx, memoryLookups) == nil {
			now, _ := process.RSS(s.PID)
			peak = max(peak, now)
		}
	})
	r, err = b.Drive(ctx, s, -1, figures.Redirects(s.Addr, figures.ClickConns, bulksRate, figures.Popular(len(codes), func(i int) string { return codes[i] })))
	cancel()
	all.Wait()
	r.RSSFirst, r.RSS = first, peak
	text := ""
	answers.Range(func(status, n any) bool {
		text += fmt.Sprintf(", %d answers %s", n.(*atomic.Int64).Load(), status)
		return true
	})
	b.Say("memory %.1f MB, at its peak %.1f MB%s", float64(first)/1e6, float64(peak)/1e6, text)
	return r, err
}

// sendBulk sends one list and waits for the answer, until ctx ends.
func sendBulk(ctx context.Context, addr string, body []byte, announced int, answers *sync.Map) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return // refused connections are no load; the server's own log says more
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	head := "POST " + bare.CreatePath + "/bulk HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + figures.AdminKey +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(announced) + "\r\n\r\n"
	go func() {
		if _, err := conn.Write([]byte(head)); err == nil {
			_, _ = conn.Write(body)
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	n, _ := answers.LoadOrStore(res.Status, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	var rest bytes.Buffer
	_, _ = rest.ReadFrom(res.Body)
	_ = res.Body.Close()
}

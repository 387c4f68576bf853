package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
)

// askBound is when a turn is given up.
const askBound = 60 * time.Second

// question is one kind of request.
type question struct {
	name  string
	bar   float64 // ms, p99; 0 = none
	alone bool    // the bar is for one connection
	n     int     // requests of each turn; 0 = turnRequests

	// next returns request i, and what makes its answer a right one. Many goroutines
	// call it.
	next func(i int) (request []byte, right func(status int, body []byte) bool)
}

// ask sends the requests of one turn, each connection the next one once it has its
// answer; latency runs from the sending to the last byte of the answer.
func ask(ctx context.Context, s *process.Server, q question, conns int) (figures.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	var next atomic.Int64
	results, errs := make([]load.Result, conns), make([]error, conns)
	before, err := process.CPU(s.PID)
	if err != nil {
		return figures.Sample{}, err
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for w := range conns {
		wg.Go(func() {
			errs[w] = askOn(ctx, s, &results[w], func() (i int, more bool) {
				i = int(next.Add(1)) - 1
				return i, i < q.n && time.Since(begin) < turnBound
			}, q)
		})
	}
	wg.Wait()
	window := time.Since(begin)
	after, err := process.CPU(s.PID)
	if err := errors.Join(append(errs, err)...); err != nil {
		return figures.Sample{}, err
	}
	sum := load.Result{Wrong: map[string]uint64{}}
	for i := range results {
		sum.Latency.Merge(&results[i].Latency)
		sum.Answered += results[i].Answered
		for what, n := range results[i].Wrong {
			sum.Wrong[what] += n
			sum.Example = results[i].Example
		}
	}
	return figures.Sample{Outcome: load.Outcome{Streams: []load.Result{sum}, Window: window}, ServerCPU: after - before}, nil
}

// askOn is one connection of a turn.
func askOn(ctx context.Context, s *process.Server, r *load.Result, next func() (int, bool), q question) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr.String())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = c.Close() }() // everything was read
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	in, body := bufio.NewReaderSize(c, 64<<10), bytes.Buffer{}
	for i, more := next(); more && ctx.Err() == nil; i, more = next() {
		request, right := q.next(i)
		begin := time.Now()
		_, err := c.Write(request)
		status := 0
		if err == nil {
			status, err = readAnswer(in, &body)
		}
		if err != nil { // it makes the row worthless, not the run
			r.Wrong = map[string]uint64{err.Error(): 1}
			return nil
		}
		took := time.Since(begin)
		if !right(status, body.Bytes()) {
			r.Wrong = map[string]uint64{fmt.Sprintf("status %d", status): 1}
			r.Example = string(request[:min(len(request), 200)]) + "\n" + body.String()[:min(body.Len(), 300)]
			return nil
		}
		r.Answered++
		r.Latency.Record(took)
	}
	return nil
}

func readAnswer(in *bufio.Reader, body *bytes.Buffer) (status int, err error) {
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	body.Reset()
	_, err = io.Copy(body, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// linkPage is what a list answers, as far as the bench reads it.
type linkPage struct {
	Links []struct {
		Code    string    `json:"short_code"`
		Created time.Time `json:"created_at"`
	} `json:"links"`
	Next string `json:"next_cursor"`
}

// page asks for a list with the admin key; the page is empty when the status is not 200.
func (a *store) page(ctx context.Context, query string) (p linkPage, status int, err error) {
	body, status, err := a.call(ctx, http.MethodGet, "/api/v1/links"+query, nil)
	if err == nil && status == http.StatusOK {
		err = json.Unmarshal(body, &p)
	}
	return p, status, err
}

func (a *store) call(ctx context.Context, method, path string, body []byte) (answer []byte, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+a.server.Addr.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("ask: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+figures.AdminKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("ask: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	answer, err = io.ReadAll(res.Body)
	return answer, res.StatusCode, err
}

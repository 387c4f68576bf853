package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/shorten/create"
)

// bulkServer answers /bulk with a link for each; refuse may answer instead.
func bulkServer(t *testing.T, refuse func(w http.ResponseWriter, rows int) bool) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Links []client.NewLink }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if refuse != nil && refuse(w, len(body.Links)) {
			return
		}
		results := make([]map[string]any, len(body.Links))
		for i, l := range body.Links {
			results[i] = map[string]any{"status": 201, "link": map[string]string{"short_url": "short of " + l.LongURL}}
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"results": results}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestCtrlCSaysHowFarItCame(t *testing.T) {
	s := bulkServer(t, nil)
	in, typing := io.Pipe()
	answers, out := io.Pipe()
	defer func() { _ = typing.Close() }()
	ctx, interrupt := context.WithCancel(t.Context())
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"shorten", "--server=" + s.URL}, cli.Terminal{In: in, Out: out, Err: &errs})
	}()
	if _, err := io.WriteString(typing, "http://a\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(answers).ReadString('\n')
	if err != nil || line != "short of http://a\n" {
		t.Fatalf("%q, %v", line, err)
	}
	interrupt()
	if got := <-code; got != 130 || errs.String() != "curt: stopped after line 1: 1 created, 0 failed: interrupted\n" {
		t.Errorf("exit %d, %q", got, errs.String())
	}
}

// A limit below the size of a request makes smaller requests, in order, not a failure.
func TestALimitMakesSmallerRequests(t *testing.T) {
	largest := 0
	s := bulkServer(t, func(w http.ResponseWriter, rows int) bool {
		if rows <= 7 {
			largest = max(largest, rows)
			return false
		}
		if rows > 20 { // never, while fewer would have to wait
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"title":"Bad request","status":400,"field":"links","detail":"links: at most 20 at once"}`)
			return true
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	var input, want strings.Builder
	for i := range 100 {
		_, _ = fmt.Fprintf(&input, "http://%d\n", i)
		_, _ = fmt.Fprintf(&want, "short of http://%d\n", i)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"shorten", "--server=" + s.URL, "-"}, cli.Terminal{In: strings.NewReader(input.String()), Out: &out, Err: &errs})
	if code != 0 || out.String() != want.String() || errs.Len() > 0 {
		t.Errorf("exit %d, %q\n%s", code, errs.String(), out.String())
	}
	if largest == 0 {
		t.Error("no request passed")
	}
}

func TestABrokenConnectionIsNotASuccess(t *testing.T) {
	first := true
	s := bulkServer(t, func(http.ResponseWriter, int) bool {
		if first {
			first = false
			return false
		}
		panic(http.ErrAbortHandler)
	})
	var out, errs bytes.Buffer
	in := strings.NewReader(strings.Repeat("http://a\n", 3*create.MaxMany))
	code := run(t.Context(), []string{"shorten", "--server=" + s.URL}, cli.Terminal{In: in, Out: &out, Err: &errs})
	made := strings.Count(out.String(), "\n")
	want := fmt.Sprintf("curt: stopped after line %d: %d created, 0 failed; some of the next lines may have been created: ", made, made)
	if code != cli.ExitUnavailable || !strings.HasPrefix(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit %d after %d lines, %q", code, made, errs.String())
	}
}

func TestAnInterruptedCallIsOneWord(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, out, errs := curt(ctx, "links", "list", "--server=http://127.0.0.1:1")
	if code != cli.ExitInterrupted || out != "" || errs != "curt: interrupted\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

package script

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// Run runs each case as a subtest against the server. What a case captured is
// known to the cases after it.
func Run(t *testing.T, s Script, server *curttest.Server) {
	t.Helper()
	vars := Vars{
		"host": server.Addr, "base": "http://" + server.Addr, "key": curttest.Key,
		"admin": "Authorization: Bearer " + curttest.Key, "json": "Content-Type: application/json",
	}
	for _, c := range s.Cases {
		ok := t.Run(c.Title, func(t *testing.T) {
			r := runner{t: t, addr: server.Addr, vars: vars}
			defer r.hangUp()
			for _, step := range c.Steps {
				r.step(step)
			}
		})
		if !ok && t.Context().Err() != nil {
			return
		}
	}
}

// runner is one case on its way.
type runner struct {
	t    *testing.T
	addr string
	vars Vars
	conn *curttest.Conn // nil = the next request connects
}

func (r *runner) step(s Step) {
	r.t.Helper()
	if s.Connect {
		r.hangUp()
	}
	time.Sleep(s.Pause)
	for range s.Times {
		deadline := time.Now().Add(s.Again)
		for {
			failed := r.exchange(s)
			if failed == nil {
				break
			}
			if !time.Now().Before(deadline) {
				r.t.Fatal(failed)
			}
			time.Sleep(10 * time.Millisecond) // a poll: nothing announces that statistics are fresh
		}
	}
}

// exchange sends the request once and checks the answer.
func (r *runner) exchange(s Step) error {
	now := time.Now()
	method, raw, err := r.bytes(s, now)
	if err != nil {
		return fmt.Errorf("line %d: %w", s.Line, err)
	}
	if r.conn == nil {
		if r.conn, err = curttest.Dial(r.t.Context(), r.addr); err != nil {
			return fmt.Errorf("line %d: %w", s.Line, err)
		}
	}
	if err := r.conn.Send(raw); err != nil {
		r.hangUp()
		return fmt.Errorf("line %d: %w", s.Line, err)
	}
	a, err := r.conn.Read(method)
	if err != nil {
		r.hangUp()
		return fmt.Errorf("line %d: %w", s.Line, err)
	}
	for _, w := range s.Want {
		if w.Text == "closed" {
			if a, err := r.conn.Read(method); err == nil {
				return fmt.Errorf("line %d: the connection goes on: %s", w.Line, a.Raw)
			}
			r.hangUp()
			continue
		}
		captured, err := check(w.Text, a, r.vars, now)
		if err != nil {
			return fmt.Errorf("line %d: %w\n%s\n%s", w.Line, err, a.Raw, shorten(a.Body))
		}
		maps.Copy(r.vars, captured)
	}
	if a.Closes() {
		r.hangUp()
	}
	return nil
}

// bytes builds the request.
func (r *runner) bytes(s Step, now time.Time) (method, raw string, err error) {
	if s.Raw != "" {
		method, _, _ = strings.Cut(s.Raw, " ")
		raw, err = r.vars.Expand(s.Raw, now, same)
		return method, raw, err
	}
	text, err := r.vars.Expand(strings.Join(s.Request, "\r\n"), now, same)
	if err != nil {
		return "", "", err
	}
	head, body, hasBody := strings.Cut(text, "\r\n\r\n")
	line, rest, _ := strings.Cut(head, "\r\n")
	method, _, _ = strings.Cut(line, " ")
	lower := "\r\n" + strings.ToLower(rest)
	raw = line + " HTTP/1.1\r\n"
	if !strings.Contains(lower, "\r\nhost:") {
		raw += "Host: " + r.addr + "\r\n"
	}
	if rest != "" {
		raw += rest + "\r\n"
	}
	if hasBody && !strings.Contains(lower, "\r\ncontent-length:") && !strings.Contains(lower, "\r\ntransfer-encoding:") {
		raw += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return method, raw + "\r\n" + body, nil
}

func (r *runner) hangUp() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// shorten keeps failures readable.
func shorten(body []byte) string {
	if len(body) > 2000 {
		return string(body[:2000]) + "…"
	}
	return string(body)
}

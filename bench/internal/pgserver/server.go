// Package pgserver runs a PostgreSQL of its own for a measurement, and reads what CPU time all of its processes take.
package pgserver

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/bench/internal/process"
	"curt/bench/internal/service"
)

// Server is a running PostgreSQL that syncs each commit to its disk.
type Server struct {
	*service.Service
	made int
}

// Start starts a server with its data in a new folder under temp, which goes with it.
func Start(ctx context.Context, script, temp string) (*Server, error) {
	s, err := service.Start(ctx, script, temp, "postgres", "on")
	if err != nil {
		return nil, err
	}
	return &Server{Service: s}, nil
}

// URL is of a database of the server.
func (s *Server) URL(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("curt"), Host: s.Addr, Path: "/" + database, RawQuery: "sslmode=disable"}).String()
}

// Database makes an empty database and returns its URL.
func (s *Server) Database(ctx context.Context) (string, error) {
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	defer func() { _ = c.Close(ctx) }() // nothing is lost with it
	s.made++
	name := "bench_" + strconv.Itoa(s.made)
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	return s.URL(name), nil
}

// CPU returns the CPU time of all processes of the server so far. Those that ended are in it
// once the first process has waited for them.
func (s *Server) CPU() (sum time.Duration, err error) {
	children, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("CPU time of PostgreSQL: %w", err)
	}
	for _, name := range children {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if pid != s.PID && (len(fields) < 2 || fields[1] != strconv.Itoa(s.PID)) {
			continue
		}
		used, err := process.CPU(pid)
		if err != nil {
			continue
		}
		sum += used
	}
	reaped, err := process.Reaped(s.PID)
	return sum + reaped, err
}

// Package bare is the server that curt is compared with in the same run: net/http
// with nothing behind it. It shows how fast this machine is right now, what HTTP
// alone costs, and what a durable write costs that does not share its fsync.
package bare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The paths. Every GET but /readyz is answered with a redirect.
const (
	CreatePath = "/api/v1/links" // a fixed 201, nothing stored
	FsyncPath  = "/fsync"        // the same after 4 KiB more in a file and one fdatasync
)

const (
	// page is what one commit of a database appends at least.
	page = 4 << 10

	// fileMax bounds the file on disk; past it, it begins again.
	fileMax = 1 << 30
)

// Run serves until ctx ends, with a file in folder, and logs its address.
func Run(ctx context.Context, folder string, log *slog.Logger) error {
	f, err := os.Create(filepath.Join(folder, "bare.wal"))
	if err != nil {
		return fmt.Errorf("make the file: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing in it is wanted
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s := &http.Server{Handler: handler(&journal{file: f}), ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = s.Close() // nobody waits for its answers any more
	}()
	log.InfoContext(ctx, "listening", slog.String("addr", l.Addr().String()))
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	<-stopped
	return nil
}

func handler(j *journal) http.Handler {
	// As long as curt's own answers.
	created := []byte(`{"short_code":"0000000","pad":"` + strings.Repeat("x", 640) + `"}` + "\n")
	location := "https://www.getting-started.com/2026/annual-report-open-positions-gn89ic?utm_source=email"
	answer := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a client that hangs up gets no answer
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(created)))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(created)
	}
	m := http.NewServeMux()
	m.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.Header().Set("Cache-Control", "private, max-age=0")
		w.WriteHeader(http.StatusFound)
	})
	m.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	m.HandleFunc("POST "+CreatePath, answer)
	m.HandleFunc("POST "+FsyncPath, func(w http.ResponseWriter, r *http.Request) {
		if err := j.commit(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, r)
	})
	return m
}

// journal appends one page after the other, each with a sync of its own.
type journal struct {
	mu   sync.Mutex
	file *os.File // guarded by mu
	size int64    // guarded by mu
}

func (j *journal) commit() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size >= fileMax {
		if err := j.file.Truncate(0); err != nil {
			return fmt.Errorf("truncate: %w", err)
		}
		j.size = 0
	}
	var b [page]byte
	if _, err := j.file.WriteAt(b[:], j.size); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	j.size += page
	if err := syscall.Fdatasync(int(j.file.Fd())); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

package bare_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/bench/internal/bare"
)

func TestAnswersAndAppendsOnePageForEachDurableCreate(t *testing.T) {
	folder := t.TempDir()
	lines, out := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bare.Run(ctx, folder, slog.New(slog.NewJSONHandler(out, nil))) }()
	var line struct{ Addr string }
	if err := json.NewDecoder(lines).Decode(&line); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(folder, "bare.wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		method, path string
		status       int
		size         int64
	}{
		{"GET", "/abc", 302, 0},
		{"POST", bare.CreatePath, 201, 0},
		{"POST", bare.FsyncPath, 201, 4096},
		{"POST", bare.FsyncPath, 201, 8192},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+line.Addr+c.path, strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != c.status || size() != c.size {
			t.Errorf("%s %s: %d, file of %d bytes; want %d, %d", c.method, c.path, res.StatusCode, size(), c.status, c.size)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// ClickHouse is one ClickHouse server of a test, with databases for each part of it. It is
// safe for many goroutines.
//
// It is the engine and the servers of ClickHouse 26 in a library: what it lacks beside a
// packaged server is replication between processes.
type ClickHouse struct {
	*service

	tcp, http string // addresses
	made      atomic.Int64
}

// StartClickHouse starts a server that ends with the test.
func StartClickHouse(t testing.TB) *ClickHouse {
	t.Helper()
	dir, tcp, http := filepath.Join(os.TempDir(), "curt-clickhouse-"+rand.Text()), FreePort(t), FreePort(t)
	c := &ClickHouse{tcp: net.JoinHostPort("127.0.0.1", tcp), http: net.JoinHostPort("127.0.0.1", http)}
	c.service = launch(t, "clickhouse", dir, tcp, http)()
	return c
}

// URL returns what a client connects to a database with.
func (c *ClickHouse) URL(database string) string {
	return (&url.URL{Scheme: "clickhouse", Host: c.tcp, Path: "/" + database}).String()
}

// Database makes an empty database and returns its name.
func (c *ClickHouse) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", c.made.Add(1))
	c.Exec(t, "CREATE DATABASE "+name+" ENGINE = Atomic")
	return name
}

// Exec runs a statement and returns what it says, as tab-separated lines.
func (c *ClickHouse) Exec(t testing.TB, statement string) string {
	t.Helper()
	text, err := c.Ask(context.WithoutCancel(t.Context()), statement) // clean-up uses it too
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Ask is Exec for whoever goes on when the server is away. It speaks HTTP, so that it shows
// nothing of what the driver under test does.
func (c *ClickHouse) Ask(ctx context.Context, statement string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.http+"/", strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", statement, text)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

package clickdb_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
)

// TestReasons: what is said of a server that cannot be used has its address and why, and no credentials.
func TestReasons(t *testing.T) {
	d, err := clickdb.New(clickdb.Config{URL: "clickhouse://anna:s3cret@ch.example:9000/curt?dial_timeout=1s"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9000}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("%w: no response within 5s", analytics.ErrUnavailable))
	for _, c := range []struct {
		err  error
		want string
		down bool // nobody answered
	}{
		{fmt.Errorf("connect to ClickHouse: %w: %w", analytics.ErrUnavailable, refused), "connect: connection refused", true},
		{clickdb.Unavailable(ctx, context.Canceled), "no response within 5s", true},
		{&driver.Exception{Code: 516, Message: "anna: Authentication failed: password is incorrect, or there is no user with such name."}, "user or password is wrong", false},
		{&driver.Exception{Code: 497, Message: "anna: Not enough privileges. To execute this query,\nit's necessary to have the grant SELECT"}, "Not enough privileges. To execute this query, it's necessary to have the grant SELECT", false},
		{fmt.Errorf("%w: %w", clickdb.ErrUnfit, errors.New("it is too old")), "unusable database: it is too old", false},
	} {
		if got := d.Reason(c.err); got != c.want {
			t.Errorf("%v is told as %q, want %q", c.err, got, c.want)
		}
		if got := clickdb.Unreachable(c.err); got != c.down {
			t.Errorf("%v: that nobody answered is %v", c.err, got)
		}
		d.Found(c.err)
		err := d.Healthy()
		public, ok := errors.AsType[*clickdb.UnavailableError](err)
		if !ok || !errors.Is(err, analytics.ErrUnavailable) || public.PublicMessage() != "ch.example:9000/curt: "+c.want || strings.Contains(err.Error(), "anna") {
			t.Errorf("health: %v", err)
		}
	}
	if d.Found(nil); d.Healthy() != nil {
		t.Error("one that answers is not healthy")
	}
	if got := clickdb.AddressOf("clickhouse://anna:s3cret@a:1,b:2?password=x"); got != "a:1,b:2" {
		t.Errorf("an address without a database: %q", got)
	}
}

package pgdb_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"curt/internal/backend/postgres/pgdb"
)

// The kernel gives up peers that acknowledge nothing, and asks those that are silent.
func TestConnectionsAreProbed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := pgdb.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ level, option, most int }{
		"TCP_USER_TIMEOUT, ms": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int((10 * time.Second).Milliseconds())},
		"SO_KEEPALIVE":         {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"TCP_KEEPIDLE, s":      {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10},
		"TCP_KEEPINTVL, s":     {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
		"TCP_KEEPCNT":          {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
	} {
		var got int
		var failed error
		if err := raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), tt.level, tt.option) }); err != nil {
			t.Fatal(err)
		}
		if failed != nil || got < 1 || got > tt.most {
			t.Errorf("%s is %d, %v; want 1 to %d", name, got, failed, tt.most)
		}
	}
}

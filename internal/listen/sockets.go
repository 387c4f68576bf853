// Package listen binds the addresses of a server or inherits their sockets, serves them, and
// drains them. [Bind] is first, before anything slow happens; [New] puts handlers behind the
// sockets; [Traffic.Serve] begins, and [Traffic.Drain] ends without failing a request.
//
// The public socket is the lane's, which hands connections over to net/http, or net/http's own.
// The first file to read is traffic.go.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"curt/internal/config"
)

// Addresses are what to bind; "" = no socket.
type Addresses struct{ Public, API, Admin string }

// Sockets are bound and not yet served: connections wait in them.
type Sockets struct {
	public, api, admin *gate // nil = none
	inherited          bool  // they are a supervisor's, too, and stay open without us
}

// Bind takes the addresses, or the sockets that a supervisor hands down for them. An error that
// the operator can correct is a [*config.Error].
func Bind(ctx context.Context, a Addresses) (*Sockets, error) {
	given, err := inherit()
	if err != nil {
		return nil, err
	}
	s := &Sockets{inherited: len(given) > 0}
	for _, want := range []struct {
		setting, address string
		gate             **gate
	}{{"CURT_LISTEN", a.Public, &s.public}, {"CURT_API_LISTEN", a.API, &s.api}, {"CURT_ADMIN_LISTEN", a.Admin, &s.admin}} {
		if want.address == "" {
			continue
		}
		l := given.next()
		if l == nil {
			if l, err = Listen(ctx, want.setting, want.address); err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
		*want.gate = newGate(l)
	}
	return s, nil
}

// Public returns the address of the public socket; nil = none.
func (s *Sockets) Public() net.Addr { return s.public.addr() }

// API returns the address of the API's own socket; nil = none.
func (s *Sockets) API() net.Addr { return s.api.addr() }

// Admin returns the address of the operator's socket; nil = none.
func (s *Sockets) Admin() net.Addr { return s.admin.addr() }

// Close closes the sockets; those that are closed already stay so.
func (s *Sockets) Close() error {
	var errs []error
	for _, g := range []*gate{s.admin, s.api, s.public} {
		if g != nil {
			errs = append(errs, g.Close())
		}
	}
	return errors.Join(errs...)
}

// lookupBound is how long the name of an address may take to look up: a start ends within a
// second.
const lookupBound = 500 * time.Millisecond

// Listen binds the address of a setting. A name that cannot be found is a wrong setting; an
// address that is taken, or not this machine's yet, is not: it may be right a moment later.
func Listen(ctx context.Context, setting, address string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupBound)
	defer cancel()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.As(err, new(*net.DNSError)) || errors.As(err, new(*net.AddrError)) {
		return nil, &config.Error{Setting: setting, Value: address, Want: err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", setting, address, err)
	}
	return l, nil
}

// IsLoopback reports whether an address is reached from this machine only.
func IsLoopback(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

// firstInherited is the first descriptor that a supervisor hands down.
const firstInherited = 3

// inherited are the sockets that a supervisor opened (sd_listen_fds(3)), in the order CURT_LISTEN,
// CURT_API_LISTEN and CURT_ADMIN_LISTEN, without those that are not set. Connections wait in them
// while this process is restarted.
type inherited []net.Listener

// inherit takes the sockets of this process; a child's environment does not name them again.
func inherit() (inherited, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("inherit the listeners: %w", err)
		}
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 64 {
		return nil, &config.Error{Setting: "LISTEN_FDS", Value: count, Want: "expected the number of listeners"}
	}
	var ls inherited
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		f := os.NewFile(uintptr(fd), "listener "+strconv.Itoa(fd))
		l, err := net.FileListener(f)
		if err != nil {
			return nil, &config.Error{Setting: "LISTEN_FDS", Value: count, Want: fmt.Sprintf("descriptor %d is not a listener: %v", fd, err)}
		}
		if err := f.Close(); err != nil { // l is a copy
			return nil, fmt.Errorf("inherit the listeners: %w", err)
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// next returns the next socket, or nil.
func (ls *inherited) next() net.Listener {
	if len(*ls) == 0 {
		return nil
	}
	l := (*ls)[0]
	*ls = (*ls)[1:]
	return l
}

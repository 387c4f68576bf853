package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/link"
)

const (
	// session is for how long ZooKeeper remembers a client that it does not hear. The client gives up a connection after
	// two thirds of it without an answer.
	session = 4 * time.Second
	// patience bounds a call, whatever its caller's deadline: without one a caller would wait as long as
	// ZooKeeper is unavailable.
	patience = 4 * time.Second
	// retryPause is before a call that failed is repeated, and grows with their number.
	retryPause = 20 * time.Millisecond
)

// Leases are counters in ZooKeeper. They are safe for many goroutines.
type Leases struct {
	// Set once in Open.
	cfg Config
	acl []zk.ACL

	conn       atomic.Pointer[client]
	refused    atomic.Pointer[string] // why ZooKeeper refused a call; nil = it did not lately
	connectErr atomic.Pointer[error]  // why the last connection came to nothing; nil = the server answered
}

var _ codegen.Leaser = (*Leases)(nil)

// client is a connection, which opens sessions by itself.
type client struct {
	*zk.Conn

	known atomic.Bool // the user was named; the client repeats that in each session
}

// Open connects soon, and goes on trying until Close. It waits for nothing.
func Open(cfg Config) (*Leases, error) {
	l := &Leases{cfg: cfg, acl: zk.WorldACL(zk.PermAll)}
	if cfg.User != "" {
		l.acl = zk.DigestACL(zk.PermAll, cfg.User, cfg.Password)
	}
	conn, err := l.connect()
	if err != nil {
		return nil, err
	}
	l.conn.Store(conn)
	return l, nil
}

func (l *Leases) connect() (*client, error) {
	conn, _, err := zk.Connect(slices.Clone(l.cfg.Servers), session, zk.WithHostProvider(&hosts{}), zk.WithDialer(l.dial),
		zk.WithLogInfo(false), zk.WithLogger(quiet{}), zk.WithMaxBufferSize(1<<16), zk.WithMaxConnBufferSize(1<<16))
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	return &client{Conn: conn}, nil
}

// dial implements zk.Dialer.
func (l *Leases) dial(_, address string, timeout time.Duration) (net.Conn, error) {
	nc, err := l.cfg.dial(context.Background(), address, timeout) // the client has no context
	if err != nil {
		l.connectErr.Store(&err)
		return nil, err
	}
	return &conn{nc, func(err error) {
		if err == nil {
			l.connectErr.Store(nil)
		} else if !errors.Is(err, net.ErrClosed) { // by us
			err = l.cfg.unanswered(address, err)
			l.connectErr.Store(&err)
		}
	}}, nil
}

// Run begins anew, until ctx ends, where there was no session for longer than one lasts: a ZooKeeper that was restored refuses whoever has
// seen more than it has, for ever.
func (l *Leases) Run(ctx context.Context) error {
	var without time.Time // since when there was no session; zero = there is one
	for background.Sleep(ctx, session/8) {
		switch now := time.Now(); {
		case l.conn.Load().State() == zk.StateHasSession:
			without = time.Time{}
		case without.IsZero():
			without = now
		case now.Sub(without) > session:
			conn, err := l.connect()
			if err != nil {
				return err
			}
			l.conn.Swap(conn).Close()
			without = time.Time{}
		}
	}
	return nil
}

// Close ends the connection. Calls end with errors from then on.
func (l *Leases) Close() error {
	l.conn.Load().Close()
	return nil
}

var errNoSession = errors.New("no session of ZooKeeper")

// Healthy returns nil while there is a session and ZooKeeper refuses nothing. It does no I/O.
func (l *Leases) Healthy() error {
	if why := l.refused.Load(); why != nil {
		return fmt.Errorf("ZooKeeper: %s", *why)
	}
	if l.conn.Load().State() == zk.StateHasSession {
		return nil
	}
	return l.because(errNoSession)
}

// because adds why there is no connection, if that is known.
func (l *Leases) because(err error) error {
	if why := l.connectErr.Load(); why != nil && l.conn.Load().State() != zk.StateHasSession {
		return fmt.Errorf("%w: %w", err, *why)
	}
	return err
}

// Lease implements codegen.Leaser.
func (l *Leases) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	if n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("lease %d ids from %s: %w", n, counter, link.ErrInvalid)
	}
	first, err := l.move(ctx, counter, func(mark uint64) (uint64, error) {
		if mark > math.MaxInt64-n {
			return 0, fmt.Errorf("no %d ids are left: %w", n, link.ErrInvalid)
		}
		return mark + n, nil
	})
	if err != nil {
		return 0, fmt.Errorf("lease from %s: %w", counter, err)
	}
	return first, nil
}

// Skip implements codegen.Leaser.
func (l *Leases) Skip(ctx context.Context, counter string, n uint64) error {
	_, err := l.Lease(ctx, counter, n)
	return err
}

// Raise implements codegen.Leaser.
func (l *Leases) Raise(ctx context.Context, counter string, from, to uint64) error {
	if to <= from || to > math.MaxInt64 {
		return fmt.Errorf("raise %s to %d: %w", counter, to, link.ErrInvalid)
	}
	_, err := l.move(ctx, counter, func(mark uint64) (uint64, error) {
		if mark != from {
			return 0, link.ErrConflict
		}
		return to, nil
	})
	if err != nil {
		return fmt.Errorf("raise %s from %d: %w", counter, from, err)
	}
	return nil
}

// Leased implements codegen.Leaser. The server that is asked catches up with the leader first.
func (l *Leases) Leased(ctx context.Context, counter string) (uint64, error) {
	mark, err := l.retry(ctx, func(c *client) (uint64, error) {
		mark, _, err := l.read(c, counter)
		return mark, err
	})
	if err != nil {
		return 0, fmt.Errorf("read the high-water mark of %s: %w", counter, err)
	}
	return mark, nil
}

// node returns the path of a counter.
func (l *Leases) node(counter string) string { return l.cfg.Path + "/" + counter }

// missing is the version of a node that is not there.
const missing = -1

// read returns the mark of a counter and the version of its node.
func (l *Leases) read(c *client, counter string) (mark uint64, version int32, err error) {
	node := l.node(counter)
	if l.cfg.User != "" && !c.known.Load() {
		if err := c.AddAuth("digest", []byte(l.cfg.User+":"+l.cfg.Password)); err != nil {
			return 0, 0, err
		}
		c.known.Store(true)
	}
	if _, err := c.Sync(node); err != nil {
		return 0, 0, err
	}
	data, stat, err := c.Get(node)
	if errors.Is(err, zk.ErrNoNode) {
		return 0, missing, nil
	}
	if err != nil {
		return 0, 0, err
	}
	mark, err = strconv.ParseUint(string(data), 10, 63)
	if err != nil || stat.Version < 0 { // a negative version would not be compared
		return 0, 0, fmt.Errorf("%w: the data of node %s is not a number", link.ErrInvalid, node)
	}
	return mark, stat.Version, nil
}

// move writes what next makes of the mark, and returns the mark before. Where another process was faster it begins anew, and
// also where the answer to the write was lost: then the ids of that write are nobody's.
func (l *Leases) move(ctx context.Context, counter string, next func(mark uint64) (uint64, error)) (before uint64, err error) {
	return l.retry(ctx, func(c *client) (uint64, error) {
		mark, version, err := l.read(c, counter)
		if err != nil {
			return 0, err
		}
		to, err := next(mark)
		if err != nil {
			return 0, err
		}
		return mark, l.write(c, counter, version, to)
	})
}

// write sets the mark of a counter whose node has the version.
func (l *Leases) write(c *client, counter string, version int32, mark uint64) error {
	node, data := l.node(counter), strconv.AppendUint(nil, mark, 10)
	if version != missing {
		_, err := c.Set(node, data, version)
		return err
	}
	_, err := c.Create(node, data, 0, l.acl)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for i, letter := range l.cfg.Path + "/" { // the nodes above
		if letter != '/' || i == 0 {
			continue
		}
		if _, err := c.Create(l.cfg.Path[:i], nil, 0, l.acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return errAgain
}

// errAgain has a step repeated.
var errAgain = errors.New("the node was created a moment ago")

// retry repeats a step that ZooKeeper did not answer, or that another process was faster with, until the caller's
// time or ours is over.
func (l *Leases) retry(ctx context.Context, step func(*client) (uint64, error)) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for try := 1; ; try++ {
		n, err := within(ctx, l.conn.Load(), step)
		faster := errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, errAgain)
		switch {
		case err == nil:
			l.refused.Store(nil)
			return n, nil
		case errors.Is(err, link.ErrInvalid), errors.Is(err, link.ErrConflict):
			return 0, err
		case errors.Is(err, link.ErrUnavailable):
			return 0, l.because(err)
		case !faster && !silent(err):
			why := strings.TrimPrefix(err.Error(), "zk: ")
			l.refused.Store(&why)
			return 0, link.Unavailable(fmt.Errorf("ZooKeeper refused: %w", err))
		}
		pause := retryPause * time.Duration(min(try, 10))
		if faster { // of many that want one counter not all come back at once
			pause = rand.N(time.Millisecond * time.Duration(min(try, 20)))
		}
		if !background.Sleep(ctx, pause) {
			return 0, l.because(link.Unavailable(fmt.Errorf("ZooKeeper is unavailable: %w: %w", err, context.Cause(ctx))))
		}
	}
}

// silent reports whether ZooKeeper did not answer, so that it is not known what became of the call.
func silent(err error) bool {
	for _, lost := range []error{zk.ErrConnectionClosed, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrClosing, zk.ErrNoServer} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// within runs a step until the caller's time is over: calls of the client wait for a connection as long as
// there is none. A step that was left may still move the counter; its ids are nobody's.
func within(ctx context.Context, c *client, step func(*client) (uint64, error)) (uint64, error) {
	if ctx.Err() != nil {
		return 0, link.Unavailable(fmt.Errorf("ZooKeeper was not asked: %w", context.Cause(ctx)))
	}
	type result struct {
		n   uint64
		err error
	}
	done := make(chan result, 1)
	go func() { // ends with the answer, with the connection, or with Close
		n, err := step(c)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-ctx.Done():
		return 0, link.Unavailable(fmt.Errorf("ZooKeeper timed out: %w", context.Cause(ctx)))
	}
}

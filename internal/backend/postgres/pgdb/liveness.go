package pgdb

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// idleTrusted is how long a connection may be idle and still be used without a question:
	// what pgxpool does by default.
	idleTrusted = time.Second
	// pingLimit is how long a server has to answer that question. It leaves a look-up, which a
	// visitor waits for a second at the most, time for a new connection.
	pingLimit = 500 * time.Millisecond

	// A peer that acknowledges nothing for userTimeout, or none of the probes of an idle
	// connection, is gone: a firewall forgot the connection, or the machine lost its power.
	userTimeout       = 5 * time.Second
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
)

// liveness finds the dead among the connections of pools to one database. The zero value is
// ready to use.
//
// What dies without a word, as when another machine takes over an address, looks like a
// slow server: each statement on such a connection fails by its limit only. So that not every
// connection costs a request, one that died has the others asked before they are used, and one
// that did not answer that question has all of them replaced.
type liveness struct {
	doubted atomic.Pointer[time.Time] // who was not heard since is asked first

	mu       sync.Mutex
	pools    []*pgxpool.Pool // guarded by mu, as is replaced
	replaced time.Time
}

// open makes a pool whose connections are looked after. Each question may take as long as limit.
func (l *liveness) open(ctx context.Context, config *pgxpool.Config, limit time.Duration) (*pgxpool.Pool, error) {
	config.ConnConfig.DialFunc = dial
	config.AfterConnect = established
	config.PingTimeout = limit
	config.ShouldPing = l.shouldPing
	config.PrepareConn = answered
	config.BeforeClose = func(c *pgx.Conn) { l.closing(c, limit) }
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pools = append(l.pools, pool)
	return pool, nil
}

// pingedKey is where a connection keeps since when it has owed an answer.
const pingedKey = "curt pinged"

// shouldPing reports whether a connection is asked before it is used, and notes that it is.
func (l *liveness) shouldPing(_ context.Context, p pgxpool.ShouldPingParams) bool {
	now := time.Now()
	doubted := l.doubted.Load()
	if p.IdleDuration <= idleTrusted && (doubted == nil || now.Add(-p.IdleDuration).After(*doubted)) {
		return false
	}
	p.Conn.PgConn().CustomData()[pingedKey] = now
	return true
}

// answered is called before a connection is used.
func answered(_ context.Context, c *pgx.Conn) (bool, error) {
	delete(c.PgConn().CustomData(), pingedKey)
	return true, nil
}

// doubt has all connections asked that were not heard since.
func (l *liveness) doubt() {
	now := time.Now()
	l.doubted.Store(&now)
}

// closing is called before a connection leaves its pool. Of one that failed, pgx reads what the
// server may still say, for up to 15 s, with the place in the pool taken: four such would
// stop all writes. The request to cancel the statement is sent all the same, over another
// connection.
func (l *liveness) closing(c *pgx.Conn, limit time.Duration) {
	if !c.IsClosed() {
		return // pgx says goodbye
	}
	l.doubt()
	conn := c.PgConn().Conn()
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // its own Close would wait to say so
	}
	_ = conn.Close() // pgx closes it again
	if asked, owes := c.PgConn().CustomData()[pingedKey].(time.Time); owes && time.Since(asked) >= limit {
		l.replace(asked)
	}
}

// replace has all connections replaced: idle ones now, the others when they are given back. Of
// many that did not answer at the same time, one does it.
func (l *liveness) replace(asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked.Before(l.replaced) {
		return
	}
	l.replaced = time.Now()
	for _, pool := range l.pools {
		pool.Reset()
	}
}

// dial connects, for connectLimit in all: established lifts that for what stays. It holds for
// cancel requests, which pgx would let wait for 15 s where packets are dropped.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	until := time.Now().Add(ConnectLimit)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
	}}
	if strings.HasPrefix(network, "tcp") {
		d.Control = setUserTimeout
	}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(until); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// established is called with a new connection of a pool.
func established(ctx context.Context, c *pgx.Conn) error {
	if err := noteDirect(ctx, c); err != nil {
		return err
	}
	return c.PgConn().Conn().SetDeadline(time.Time{})
}

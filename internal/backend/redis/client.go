package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"curt/internal/background"
)

// prefix is what all keys of a namespace begin with.
type prefix string

// limits are how long calls may take.
type limits struct {
	get     time.Duration // a visitor waits, and the link store can be asked instead
	spend   time.Duration // a create waits, and the limit of this process can hold instead
	put     time.Duration // nobody waits, here and below
	publish time.Duration
}

func defaultLimits() limits {
	return limits{get: 5 * time.Millisecond, spend: 25 * time.Millisecond, put: 100 * time.Millisecond, publish: 100 * time.Millisecond}
}

const (
	dialLimit = time.Second
	// probeSoon is before the first attempt to reach a server that is away, which may have been
	// held up only; from one to the next it doubles up to probeEvery.
	probeSoon  = 20 * time.Millisecond
	probeEvery = 500 * time.Millisecond
	// steady is how long a server answers before it is one that was only held up.
	steady = 5 * time.Second
	// flushDelay is how long the first of several questions waits for others to be sent in one
	// write: without it each costs a system call here and there. Who asks alone does not wait.
	flushDelay = 20 * time.Microsecond
	// stalled is how long a connection may not answer before it is made anew.
	stalled = 2 * time.Second
)

// ErrAway says that the server was not asked, because it is not connected or failed a moment
// ago.
var ErrAway = errors.New("redis is unavailable")

// Config says where the server is.
type Config struct {
	// URL is redis://user:password@host:port/0, or rediss:// for TLS; further nodes are
	// ?addr=host:port, each; with ?master_set=NAME all hosts are Sentinels.
	URL string
	// Namespace keeps installations on one server apart; letters and digits.
	Namespace string
	// Key makes hashes of the names of buckets that nobody else can make.
	Key []byte
	// Log takes what changes about the connection; nil = discard.
	Log *slog.Logger
}

// Client is a connection to Redis that comes and goes. It is safe for many goroutines.
type Client struct {
	// Set once in New.
	cfg    Config
	option rueidis.ClientOption
	keys   prefix
	limits limits
	gets   *deadlines // of limits.get
	heard  *arrivals
	calls  *breaker
	rights *rights
	put    *rueidis.Lua
	spend  *rueidis.Lua
	charge *rueidis.Lua
	tally  *rueidis.Lua

	conn   atomic.Pointer[rueidis.Client] // nil = not connected yet
	tried  atomic.Pointer[trial]          // what else is tried; nil = nothing
	counts counters
}

// New reads the configuration. It asks nobody: until Run has connected, everything ends
// with ErrAway. An error is a URL that makes no sense, and shows no password.
func New(cfg Config) (*Client, error) {
	o, err := options(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	heard, err := newArrivals()
	if err != nil {
		return nil, wrap("begin", err)
	}
	l := defaultLimits()
	return &Client{
		cfg: cfg, option: o, keys: prefix("curt:" + cfg.Namespace + ":"), limits: l, heard: heard, gets: newDeadlines(l.get, heard.handOut),
		calls: newBreaker(), rights: newRights(), put: rueidis.NewLuaScript(putSource), spend: rueidis.NewLuaScript(spendSource),
		charge: rueidis.NewLuaScriptNoSha(chargeSource), tally: rueidis.NewLuaScriptNoSha(tallySource),
	}, nil
}

// Check returns what is wrong with a URL, in one line without its password. It asks nobody.
func Check(url string) error {
	_, err := options(url)
	return err
}

// options are the client's: no time-out of ours may cost a connection that others use.
func options(text string) (rueidis.ClientOption, error) {
	wrong := errors.New("expected redis://host:port/0, or rediss:// for TLS; ?addr=host:port for each further node, ?master_set=NAME for Sentinel")
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") || u.Host == "" {
		return rueidis.ClientOption{}, wrong // what is wrong may be in a password
	}
	for name := range u.Query() {
		if name != "addr" && name != "master_set" && name != "db" {
			return rueidis.ClientOption{}, wrong // it would be passed over
		}
	}
	o, err := rueidis.ParseURL(text)
	if err != nil {
		return o, wrong
	}
	o.Dialer = net.Dialer{Timeout: dialLimit, KeepAlive: time.Second}
	o.ConnWriteTimeout = stalled
	o.PipelineMultiplex = -1  // one connection: what Run finds to answer is what others use
	o.DisableCache = true     // L1 is ours, and knows what changed by the log
	o.AlwaysPipelining = true // else a question that ends late closes the connection
	o.MaxFlushDelay = flushDelay
	o.DisableRetry = true // whoever asks has better to do than wait
	o.ClientName = "curt"
	o.ClientSetInfo = rueidis.DisableClientSetInfo // a right that is of no use
	return o, nil
}

// Run connects, and finds out whether a server that failed answers again, until ctx ends.
// Nobody else has the time: visitors are refused meanwhile.
func (c *Client) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { c.watchRights(ctx) })
	reached, pause := false, probeSoon
	for {
		switch err := c.reach(ctx); {
		case ctx.Err() != nil:
		case err == nil:
			reached = true
			c.calls.shut()
			c.cfg.Log.InfoContext(ctx, "redis available again")
			since := time.Now()
			select {
			case <-ctx.Done():
				return nil
			case <-c.calls.opened:
				c.cfg.Log.WarnContext(ctx, "redis not responding, using memory and the link store")
			}
			if time.Since(since) >= steady {
				pause = probeSoon
			}
		case !reached:
			reached = true // it is said once
			c.cfg.Log.WarnContext(ctx, "redis unreachable, using memory and the link store", slog.Any("err", err))
		}
		if !background.Sleep(ctx, pause) {
			return nil
		}
		pause = min(2*pause, probeEvery)
	}
}

// reach connects where there is no connection, and returns nil if every node answers as
// soon as visitors want it.
func (c *Client) reach(ctx context.Context) error {
	if c.conn.Load() == nil {
		conn, err := rueidis.NewClient(c.option)
		if err != nil {
			return wrap("connect", err)
		}
		c.conn.Store(&conn)
		c.rights.wake()
	}
	conn, err := c.client()
	if err != nil {
		return err
	}
	for _, node := range nodes(conn) {
		timed, cancel := context.WithTimeout(ctx, dialLimit) // it may have to dial
		err := ping(timed, node)
		cancel()
		if err != nil {
			return err
		}
		asked := c.gets.next()
		err = ping(asked, node)
		asked.left()
		if err != nil {
			return err
		}
	}
	return nil
}

func ping(ctx context.Context, node rueidis.Client) error {
	return wrap("ping", node.Do(ctx, node.B().Ping().Build()).Error())
}

// nodes are the connections of a Cluster; else the one to the primary.
func nodes(conn rueidis.Client) []rueidis.Client {
	if !sharded(conn) {
		return []rueidis.Client{conn}
	}
	var all []rueidis.Client
	for _, n := range conn.Nodes() {
		all = append(all, n)
	}
	return all
}

// Close ends the connection; calls end with errors from then on.
func (c *Client) Close() error {
	c.heard.close()
	if conn := c.conn.Swap(nil); conn != nil {
		(*conn).Close()
	}
	return nil
}

// client returns the connection; ErrAway without one.
func (c *Client) client() (rueidis.Client, error) {
	if conn := c.conn.Load(); conn != nil {
		return *conn, nil
	}
	return nil, ErrAway
}

// guarded makes one call within a limit, unless the breaker is open, and tells the breaker
// what came of it. A nil answer of Redis is an answer, and so is that a right is missing: who
// asked is told at once, and the next right may be there.
func (c *Client) guarded(ctx context.Context, does right, limit time.Duration, call func(context.Context, rueidis.Client) error) error {
	conn, err := c.client()
	if err == nil && c.calls.open() {
		err = ErrAway
	}
	if err != nil {
		c.counts.refused.Add(1)
		return err
	}
	answered := false
	defer func() { // also when the call panics
		if answered {
			c.calls.answered()
		} else {
			c.calls.failed(time.Now())
		}
	}()
	if ctx.Done() == nil && limit == c.limits.get {
		shared := c.gets.next()
		defer shared.left()
		err = call(shared, conn)
	} else {
		timed, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = call(timed, conn)
	}
	switch {
	case err == nil || rueidis.IsRedisNil(err):
		answered = true
	case ctx.Err() != nil: // whoever asked has gone: that says nothing about Redis
		answered = true
	case errors.Is(err, context.DeadlineExceeded):
		c.counts.timeouts.Add(1)
	default:
		c.counts.failures.Add(1)
		answered = c.note(err, does, conn) || refusal(err)
	}
	return err
}

// note has the log and Refused say that a right is missing, where that is what an error means.
func (c *Client) note(err error, does right, conn rueidis.Client) bool {
	e := denied(err, does, sharded(conn))
	if e == nil {
		return false
	}
	c.rights.refused(e, time.Now())
	return true
}

// refusal reports whether an error is the server's word about one call, such as that its
// memory is full, and not that it serves nobody now.
func refusal(err error) bool {
	said, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	for _, away := range []string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "NOAUTH"} {
		if strings.HasPrefix(said.Error(), away) {
			return false
		}
	}
	return true
}

// Healthy returns nil while the server answers; else why it is not asked. It does no I/O.
func (c *Client) Healthy() error {
	if _, err := c.client(); err != nil {
		return err
	}
	if c.calls.open() {
		return ErrAway
	}
	return nil
}

// counters are totals since New.
type counters struct {
	timeouts, failures, refused, unreadable atomic.Uint64
}

// Stats are totals since New.
type Stats struct {
	Timeouts   uint64 // calls that Redis did not answer in time
	Failures   uint64 // calls that ended with another error
	Refused    uint64 // calls not made, because Redis is away
	Unreadable uint64 // entries and notes that this release cannot read
}

// Stats reads the counters; each is exact, together they are of no one moment.
func (c *Client) Stats() Stats {
	return Stats{
		Timeouts: c.counts.timeouts.Load(), Failures: c.counts.failures.Load(),
		Refused: c.counts.refused.Load(), Unreadable: c.counts.unreadable.Load(),
	}
}

// wrap names what was tried.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redis: %s: %w", what, err)
}

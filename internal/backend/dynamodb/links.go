package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/backend/dynamodb/changes"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// MaxLag is how long Lookup may lag behind a change: an eventually consistent read shows what was
// written within a second, as AWS says, and gives no bound.
const MaxLag = 5 * time.Second

// Config says which tables are opened, and how. The zero value of every field but Address is usable.
type Config struct {
	Address ddb.Address

	// Instance names this server among those over the table, for a move of its links; "" = it is no server,
	// and writes none.
	Instance string

	Region    string         // of this server, for the change log; "" = there is one
	LogBounds link.LogBounds // its Age is how long entries are kept; default link.DefaultLogBounds

	// Stored is called with the id of each new link once it is durable, also when its creator has gone
	// home. It must not block. Nil = nobody listens.
	Stored func(link.ID)

	// ReadOnly says that this process follows links and neither makes nor changes any.
	ReadOnly bool

	Meter func(ddb.Usage) // called with what each request cost; nil = nobody asks

	CallTime time.Duration // bounds a call, and five of it one for many links; default 2 s

	// CreatesDelay is how old a create is before Creates shows it; default 30 s. It covers the lag of an
	// index, the time of a request and the clocks of servers.
	CreatesDelay time.Duration

	Log *slog.Logger // default none
}

// Links is a table of links and of what belongs to them that processes share. It implements
// link.Store with every optional interface but link.Discarder, and codegen.Leaser.
//
// A write that returned nil is durable in the region: on the disks of three sites.
//
// Look-ups are eventually consistent and lag behind by MaxLag at most as far as AWS holds what it
// says; that there is no such link is the word of a consistent read. Get, GetMany, the change log,
// Chosen, Spend and FindOrCreate never lag. Lists, Expired and FindSame are read from indexes: a link
// that was created or changed a moment ago may be missing there, or be shown as it was.
//
// FindOrCreate is exact among its callers. A link of Create, or that a change made equivalent, is found once the index shows it.
//
// Every call ends within Config.CallTime, two seconds, and CreateMany, FindOrCreate and walks within
// ten, whatever DynamoDB does. A request that was throttled is sent again within that time, and is link.ErrUnavailable then.
//
// Run must be running for long use: else nobody numbers the change log for those who only read, or
// looks after Healthy.
type Links struct {
	*state.Leases
	*creator
	*reserver

	db      *ddb.Client
	log     *changes.Log
	config  Config
	healthy atomic.Pointer[error] // nil error = healthy
	closing sync.Once
}

// The contracts that Links keeps.
var (
	_ link.Backend    = (*Links)(nil)
	_ link.ManyGetter = (*Links)(nil)
	_ link.EventLog   = (*Links)(nil)
	_ link.CreateLog  = (*Links)(nil)
	_ link.Reserver   = (*Links)(nil)
	_ codegen.Leaser  = (*Links)(nil)
)

func (c Config) withDefaults() Config {
	if c.LogBounds.Age == 0 {
		c.LogBounds = link.DefaultLogBounds()
	}
	c.CreatesDelay = cmp.Or(c.CreatesDelay, 30*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// OpenLinks looks at the tables, which Migrate has made, and makes the key of the permutation at the
// first start. ddb.ErrUnfit says in one line why no server can work there.
func OpenLinks(ctx context.Context, c Config) (*Links, error) {
	c = c.withDefaults()
	s, err := open(ctx, c)
	if err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open links: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, c Config) (*Links, error) {
	db, err := ddb.Open(ctx, c.Address, ddb.Config{Meter: c.Meter, CallTime: c.CallTime})
	if err != nil {
		return nil, err
	}
	log := changes.New(db, changes.Config{Region: c.Region, Retention: c.LogBounds.Age, ReadOnly: c.ReadOnly})
	reader, gate := &linkReader{db: db, delay: c.CreatesDelay}, state.NewGate(db, c.Instance, c.Log)
	s := &Links{
		Leases: state.NewLeases(db), db: db, log: log, config: c,
		creator:  &creator{linkReader: reader, log: log, gate: gate, stored: c.Stored, flights: map[string]*flight{}},
		reserver: &reserver{db, reader, gate},
	}
	var unknown error
	s.healthy.Store(&unknown)
	return s, nil
}

// startTime bounds a start.
const startTime = 20 * time.Second

func (s *Links) begin(ctx context.Context) error {
	within := func(f func(context.Context) error) error {
		ctx, cancel := context.WithTimeoutCause(ctx, startTime, errors.New("DynamoDB did not answer within 20 s"))
		defer cancel()
		return f(ctx)
	}
	err := within(func(ctx context.Context) (err error) {
		s.identity, err = tables.Inspect(ctx, s.db, s.config.Address)
		return err
	})
	for moving := true; moving && err == nil; {
		if err = state.AwaitMove(ctx, s.db, s.config.Log); err != nil {
			return err
		}
		err = within(func(ctx context.Context) (err error) {
			if err = s.Begin(ctx); err == nil {
				err = s.creator.gate.Open(ctx)
			}
			if err != nil {
				return err
			}
			if moving, err = state.Moving(ctx, s.db); moving || err != nil { // one began in between: it has another key of codes
				err = errors.Join(err, s.creator.gate.Close(ctx))
			}
			return err
		})
	}
	return err
}

// Changes implements link.Store.
func (s *Links) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	return s.log.Changes(ctx, after, n)
}

// Head implements link.Store.
func (s *Links) Head(ctx context.Context) (link.Position, error) { return s.log.Head(ctx) }

// Events implements link.EventLog.
func (s *Links) Events(ctx context.Context, after link.Position, n int) ([]link.Event, link.Position, error) {
	return s.log.Events(ctx, after, n)
}

// ExpiryChanges implements link.EventLog.
func (s *Links) ExpiryChanges(ctx context.Context, after link.Position, n int) ([]link.Key, link.Position, bool, error) {
	return link.ReadExpiryChanges(ctx, s, after, n)
}

// Append implements link.EventLog.
func (s *Links) Append(ctx context.Context, e link.Event) error { return s.log.Append(ctx, e) }

// Followers returns where those stand of whom a fleet has one each.
func (s *Links) Followers() state.Followers { return state.NewFollowers(s.db) }

// Senders returns the servers that may hold clicks.
func (s *Links) Senders() state.Senders { return state.NewSenders(s.db) }

// Healthy returns nil while DynamoDB answers, and why not otherwise. It does no I/O.
func (s *Links) Healthy() error {
	if err := *s.healthy.Load(); err != nil {
		return fmt.Errorf("%w: %w", link.ErrUnavailable, err)
	}
	return nil
}

// healthEvery is how often DynamoDB is asked whether it answers.
const healthEvery = 2 * time.Second

// Run looks after the store until ctx ends.
func (s *Links) Run(ctx context.Context) error {
	var numbering repeatlog.Condition
	var running sync.WaitGroup
	running.Go(func() {
		s.log.Run(ctx, func(err error) {
			numbering.Log(ctx, time.Now(), s.config.Log, slog.LevelWarn, "numbering the change log failed, retrying", err)
		})
	})
	running.Go(func() { s.creator.gate.Run(ctx) })
	defer running.Wait()
	for range background.Every(ctx, healthEvery) {
		err := s.db.Read(ctx, func(ctx context.Context) error { return tables.Alive(ctx, s.db) })
		if ctx.Err() == nil {
			s.healthy.Store(&err)
		}
	}
	return context.Cause(ctx)
}

// Close refuses calls from now on, and writes that this server has ended. A second Close does nothing.
func (s *Links) Close() (err error) {
	s.closing.Do(func() {
		if err = s.creator.gate.Close(context.Background()); errors.Is(err, link.ErrUnavailable) {
			err = nil // a mover will ask an operator about it
		}
		s.db.Close()
	})
	return err
}

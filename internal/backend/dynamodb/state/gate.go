package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// A table has no lock that a mover could hold. So each server that may write links is registered, and
// answers for itself: a mover asks for a freeze in one item, and waits until every registered server has
// said that its writes are over. The freeze ends by one conditional write to that item: the mover's, that
// the links are elsewhere, or a server's, that it took too long. There is no moment at which both have
// happened, whatever the clocks of servers say.
const (
	writersPartition = "writers"

	attrToken = "freeze" // whose it is
	attrMoved = "moved"  // of a freeze: where the links are
	attrAck   = "ack"    // of a writer: the token of the freeze it keeps to
)

const (
	// lookEvery is how often a server asks whether it is to freeze.
	lookEvery = time.Second
	// FreezeLimit is how long a server refuses writes for a mover.
	FreezeLimit = 20 * time.Second
)

// Tokens of nobody: of a server that has ended, and of one that could not say that it is frozen.
const (
	closed = "closed"
	unsaid = "unsaid"
)

func freezeKey() ddb.Item { return ddb.StateKey("freeze", nil) }

// freeze is the item that a mover asks by.
type freeze struct{ token, moved string }

func readFreeze(ctx context.Context, db *ddb.Client, consistent bool) (f freeze, err error) {
	err = db.Read(ctx, func(ctx context.Context) error {
		item, err := db.Get(ctx, db.State, freezeKey(), consistent)
		f = freeze{ddb.TextOf(item, attrToken), ddb.TextOf(item, attrMoved)}
		return err
	})
	return f, err
}

// Gate is what writes of links of one server pass. The zero name registers nobody, and is always open.
type Gate struct {
	db   *ddb.Client
	name string
	log  *slog.Logger

	mu      sync.Mutex
	writing int           // guarded by mu
	frozen  string        // guarded by mu: the token of the freeze; "" = open
	idle    chan struct{} // guarded by mu: closed when no write is under way; nil = nobody waits

	since time.Time // owned by Run: when it froze
}

// NewGate returns the gate of a server with a name of its own.
func NewGate(db *ddb.Client, name string, log *slog.Logger) *Gate {
	return &Gate{db: db, name: name, log: log}
}

var errFrozen = fmt.Errorf("%w: curt move copies the last changes, or has moved the links", link.ErrUnavailable)

// Write is Write of the client for links, while no mover has them frozen; link.ErrUnavailable otherwise.
func (g *Gate) Write(ctx context.Context, f func(context.Context) error) error {
	return g.pass(func() error { return g.db.Write(ctx, f) })
}

// WriteMany is WriteMany of the client for links, as Write.
func (g *Gate) WriteMany(ctx context.Context, f func(context.Context) error) error {
	return g.pass(func() error { return g.db.WriteMany(ctx, f) })
}

func (g *Gate) pass(write func() error) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.leave()
	return write()
}

func (g *Gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen != "" {
		return errFrozen
	}
	g.writing++
	return nil
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writing--; g.writing == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// set changes the token, and returns the one before. idle is closed when all writes that began before
// have ended; nil = they have.
func (g *Gate) set(token string) (before string, idle <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, g.frozen = g.frozen, token
	if g.writing == 0 {
		return before, nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return before, g.idle
}

// Open registers the server, before its first write. ddb.ErrUnfit: the links were moved elsewhere.
func (g *Gate) Open(ctx context.Context) error {
	if g.name == "" {
		return nil
	}
	err := g.register(ctx)
	var f freeze
	if err == nil { // in this order: a mover that did not see the server has asked before
		f, err = readFreeze(ctx, g.db, true)
	}
	switch {
	case err != nil:
		return fmt.Errorf("register as a writer: %w", err)
	case f.moved != "":
		return errors.Join(fmt.Errorf("%w: the links of these tables were moved to %s", ddb.ErrUnfit, f.moved), g.Close(ctx))
	}
	return g.obey(ctx, f)
}

// registrations is how often a server tries to register when no answer says whether it is.
const registrations = 5

// register puts the name of the server among the writers. A put that is repeated changes nothing.
func (g *Gate) register(ctx context.Context) (err error) {
	for try := range registrations {
		if try > 0 {
			ddb.Pause(ctx)
		}
		err = g.db.Write(ctx, func(ctx context.Context) error {
			return g.db.Put(ctx, &dynamodb.PutItemInput{TableName: &g.db.State, Item: ddb.StateKey(writersPartition, []byte(g.name))})
		})
		if !errors.Is(err, link.ErrUncertain) {
			return err
		}
	}
	return link.Unavailable(err) // a name that was registered nevertheless is that of a server which never writes
}

// Close ends the registration, when no write can follow.
func (g *Gate) Close(ctx context.Context) error {
	if g.name == "" {
		return nil
	}
	g.set(closed)
	return g.db.Write(ctx, func(ctx context.Context) error {
		return g.db.Delete(ctx, g.db.State, ddb.StateKey(writersPartition, []byte(g.name)))
	})
}

// Run freezes and thaws as movers ask, until ctx ends.
func (g *Gate) Run(ctx context.Context) {
	if g.name == "" {
		return
	}
	var failing repeatlog.Condition
	for range background.Every(ctx, lookEvery) {
		f, err := readFreeze(ctx, g.db, true)
		if err == nil {
			err = g.obey(ctx, f)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failing.Log(ctx, time.Now(), g.log, slog.LevelWarn, "asking whether links are being moved failed, retrying", err)
		default:
			failing.LogRecovery(ctx, time.Now(), g.log, "asking whether links are being moved works again")
		}
	}
}

// obey brings the gate to what a mover asks for.
func (g *Gate) obey(ctx context.Context, f freeze) error {
	before, idle := g.set(f.token)
	switch {
	case f.token == "" && before != "":
		g.log.InfoContext(ctx, "writes of links continue")
		return nil
	case f.token == "":
		return nil
	case f.token != before:
		g.since = time.Now()
		g.log.WarnContext(ctx, "writes of links are frozen for curt move")
		if idle != nil {
			select {
			case <-idle:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return g.acknowledge(ctx, f.token)
	case f.moved == "" && time.Since(g.since) > FreezeLimit:
		return g.thaw(ctx, f.token)
	}
	return nil
}

func (g *Gate) acknowledge(ctx context.Context, token string) error {
	err := g.db.Write(ctx, func(ctx context.Context) error {
		item := ddb.StateKey(writersPartition, []byte(g.name))
		item[attrAck] = ddb.Text(token)
		return g.db.Put(ctx, &dynamodb.PutItemInput{TableName: &g.db.State, Item: item})
	})
	if err != nil { // the next look says it again
		g.set(unsaid)
	}
	return err
}

// thaw ends a freeze whose mover took too long, or died. Others see it with their next look.
func (g *Gate) thaw(ctx context.Context, token string) error {
	return endFreeze(ctx, g.db, token)
}

// endFreeze removes the ask of a freeze, unless the links are elsewhere.
func endFreeze(ctx context.Context, db *ddb.Client, token string) error {
	return db.Write(ctx, func(ctx context.Context) error {
		return db.DeleteIf(ctx, db.State, freezeKey(), "freeze = :t AND attribute_not_exists(moved)", ddb.Item{":t": ddb.Text(token)})
	})
}

// ErrThawed means that a server writes again: what it wrote since has to be moved first.
var ErrThawed = errors.New("a server writes links again")

// Frozen is tables whose links nobody writes. Switch or Release ends it, or a server does.
type Frozen struct {
	db    *ddb.Client
	token string
}

// answerWithin bounds the wait for servers to freeze.
const answerWithin = 10 * time.Second

// Freeze returns once every registered server refuses writes. without are servers that are known to have
// ended without a word. The error names those that do not answer.
func Freeze(ctx context.Context, db *ddb.Client, token string, without map[string]bool) (*Frozen, error) {
	err := db.Write(ctx, func(ctx context.Context) error {
		item := freezeKey()
		item[attrToken] = ddb.Text(token)
		err := db.Put(ctx, &dynamodb.PutItemInput{TableName: &db.State, Item: item, ConditionExpression: aws.String("attribute_not_exists(moved)")})
		if _, moved := ddb.Conditions(err); moved {
			return errMoved
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	f := &Frozen{db, token}
	if err := f.await(ctx, without); err != nil {
		return nil, errors.Join(fmt.Errorf("freeze: %w", err), f.Release(context.WithoutCancel(ctx)))
	}
	return f, nil
}

var errMoved = errors.New("the links of these tables were moved already")

const askEvery = 50 * time.Millisecond

func (f *Frozen) await(ctx context.Context, without map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var silent []string
	for range background.Every(ctx, askEvery) {
		var all []ddb.Item
		err := f.db.Read(ctx, func(ctx context.Context) (err error) {
			all, err = partition(ctx, f.db, writersPartition, nil)
			return err
		})
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err != nil:
			continue // in the last moment
		}
		silent = nil
		for _, item := range all {
			if name := string(ddb.BytesOf(item, ddb.Sort)); !without[name] && ddb.TextOf(item, attrAck) != f.token {
				silent = append(silent, name)
			}
		}
		if len(silent) == 0 {
			return nil
		}
	}
	return fmt.Errorf("no response from the servers %s; end them, or name those that were killed with --without", strings.Join(silent, ", "))
}

// Writers returns the names of servers that are registered.
func Writers(ctx context.Context, db *ddb.Client) (names []string, err error) {
	err = db.Read(ctx, func(ctx context.Context) error {
		names = nil
		all, err := partition(ctx, db, writersPartition, nil)
		for _, item := range all {
			names = append(names, string(ddb.BytesOf(item, ddb.Sort)))
		}
		return err
	})
	return names, err
}

// Switch says durably that the links are elsewhere. ErrThawed: they are not, because a server wrote, or
// may have. Any other error means that it may have happened: Moved tells.
func (f *Frozen) Switch(ctx context.Context, to string) error {
	return f.db.Write(ctx, func(ctx context.Context) error {
		_, err := f.db.Update(ctx, &dynamodb.UpdateItemInput{
			TableName: &f.db.State, Key: freezeKey(), UpdateExpression: aws.String("SET moved = :m"),
			ConditionExpression:       aws.String("freeze = :t"),
			ExpressionAttributeValues: ddb.Item{":m": ddb.Text(to), ":t": ddb.Text(f.token)},
		})
		if _, thawed := ddb.Conditions(err); thawed {
			return ErrThawed
		}
		return err
	})
}

// Release has servers write again, unless the links are elsewhere.
func (f *Frozen) Release(ctx context.Context) error { return endFreeze(ctx, f.db, f.token) }

// Moved returns where the links of the tables were moved to; "" = they are here.
func Moved(ctx context.Context, db *ddb.Client) (to string, err error) {
	f, err := readFreeze(ctx, db, true)
	return f.moved, err
}

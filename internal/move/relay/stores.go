// Package relay moves links from one store to another, PostgreSQL or DynamoDB, while servers serve. It is the
// move of package move without a data folder, accounts and statistics.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/rawlinks"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/backend/postgres/movein"
	"curt/internal/link"
	"curt/internal/move"
)

// pageRows are written together, logEntries read together.
const (
	pageRows   = 1000
	logEntries = 1000
)

// Config says which links are moved between databases of PostgreSQL and tables of DynamoDB.
// Accounts and statistics stay where they are.
type Config struct {
	From, To string   // URLs
	Shown    string   // To without secrets
	Without  []string // servers over tables of DynamoDB that ended without a word
	Log      *slog.Logger

	Progress func(step string, done, total int64) // as in move.Config
	Note     func(format string, args ...any)
}

// sink is an empty store that takes the links. Nobody else writes there: its servers wait for the switch.
type sink interface {
	Identity(ctx context.Context) (string, error)
	MovedAway(ctx context.Context) (to string, err error)
	Stored(ctx context.Context) ([]byte, error) // what Store kept; nil = nothing
	Store(ctx context.Context, text []byte) error
	Begin(ctx context.Context, key [32]byte, text []byte) error
	Continue(ctx context.Context, key [32]byte) error // in place of Begin, where there was a run before
	Put(ctx context.Context, links []link.Link) error
	Get(ctx context.Context, keys []link.Key) ([]link.Link, error)
	Same(ctx context.Context, links []link.Link) error // coldcopy.ErrDiffers
	Limited(ctx context.Context) ([]link.Key, error)
	GoOn(ctx context.Context, from coldcopy.Issued) error
	Close() error
}

// relayed is how far a move between stores has come, as the sink keeps it.
type relayed struct {
	state.MoveState

	Of      []byte        `json:"of"` // says which links are moved (coldsql.Of)
	Walked  bool          `json:"walked"`
	After   link.Cursor   `json:"after"`
	Changes link.Position `json:"changes"`
	Creates link.Position `json:"creates"`
	Ready   bool          `json:"ready"`  // all links are here, and the switch was about to come
	Mended  bool          `json:"mended"` // the links were read once more behind the switch
}

// relay is a move between stores under way.
type relay struct {
	Config
	result move.Result
	state  relayed
	from   origin
	moved  string // where the links are, of a move that is behind its switch
	logs   logs
	to     sink
}

// Why links cannot be moved from one store to another.
var (
	errSame = errors.New("--from and --to are the same store")
	errLeft = errors.New("the links were moved")
)

// Run moves the links of one store to another while servers over the first one serve, or goes on with
// a move that was interrupted. It returns when the links are in the other store and servers over it have
// begun. Those over the first one redirect on and refuse writes until they are ended, and do not start
// again.
//
// It is as move.Run: a walk, then the logs, a comparison, a freeze for the last changes, and one durable write
// that says where the links are, which lets no server write behind it.
func Run(ctx context.Context, c Config) (_ move.Result, err error) {
	r := &relay{Config: c}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx); err != nil {
		return r.result, err
	}
	if r.moved == "" {
		for _, step := range []func(context.Context) error{r.walk, r.compare, r.handOver} {
			if err := step(ctx); err != nil {
				return r.result, err
			}
		}
	}
	return r.result, r.finish(ctx)
}

func (r *relay) close() error {
	var errs []error
	if r.logs != nil {
		errs = append(errs, r.logs.Close())
	}
	if r.from != nil {
		errs = append(errs, r.from.Close())
	}
	if r.to != nil {
		errs = append(errs, r.to.Close())
	}
	return errors.Join(errs...)
}

// open opens both stores, and begins in the sink or finds out how far an earlier run came.
func (r *relay) open(ctx context.Context) (err error) {
	if r.from, err = r.openOrigin(ctx); err != nil {
		return err
	}
	if r.to, err = r.openSink(ctx); err != nil {
		return err
	}
	if err := r.distinct(ctx); err != nil {
		return err
	}
	issued, err := r.from.Issued(ctx)
	if err != nil {
		return err
	}
	stored, err := r.to.Stored(ctx)
	if err != nil {
		return err
	}
	of := coldsql.Of(issued.Key)
	if stored != nil && json.Unmarshal(stored, &r.state) != nil {
		return r.used()
	}
	switch {
	case r.moved != "" && !r.state.Ready:
		return fmt.Errorf("--from: %w to %s", errLeft, r.moved)
	case stored != nil && string(r.state.Of) != string(of),
		r.state.Switched && r.moved == "": // servers have written there since
		return r.used()
	}
	if stored == nil {
		r.state = relayed{MoveState: state.MoveState{Began: time.Now().UTC()}, Of: of}
		text, err := json.Marshal(r.state)
		if err == nil {
			err = r.to.Begin(ctx, issued.Key, text)
		}
		return err
	}
	return r.to.Continue(ctx, issued.Key)
}

// distinct refuses one store under two URLs, and one whose links are elsewhere as a target. It writes nothing.
func (r *relay) distinct(ctx context.Context) error {
	from, err := r.from.Identity(ctx)
	if err != nil {
		return err
	}
	to, err := r.to.Identity(ctx)
	if err != nil {
		return err
	}
	if from == to {
		return errSame
	}
	if r.moved, err = r.from.MovedAway(ctx); err != nil {
		return err
	}
	away, err := r.to.MovedAway(ctx)
	if err == nil && away != "" {
		err = fmt.Errorf("--to: %w to %s", errLeft, away)
	}
	return err
}

// used is the error for a target that has something.
func (r *relay) used() error {
	if isTable(r.To) {
		return rawlinks.ErrUsed
	}
	return movein.ErrUsed
}

func isTable(url string) bool { return strings.HasPrefix(url, ddb.Scheme) }

func (r *relay) openOrigin(ctx context.Context) (origin, error) {
	if isTable(r.From) {
		t, err := openTable(ctx, r.From, r.Without, r.Log)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	d, err := openDatabase(ctx, r.From, r.Log)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (r *relay) openSink(ctx context.Context) (sink, error) {
	if isTable(r.To) {
		t, err := rawlinks.Open(ctx, r.To)
		if err != nil {
			return nil, err
		}
		return rawlinks.NewTarget(t), nil
	}
	t, err := movein.Open(ctx, r.To, r.Log)
	if err != nil {
		return nil, err
	}
	return movein.Sink{Target: t}, nil
}

func (r *relay) save(ctx context.Context) error {
	text, err := json.Marshal(r.state)
	if err == nil {
		err = r.to.Store(ctx, text)
	}
	return err
}

// walk reads all links once.
func (r *relay) walk(ctx context.Context) (err error) {
	if r.logs, err = r.from.open(ctx); err != nil || r.state.Walked {
		return err
	}
	if r.state.After == "" { // what is written from now on is in the logs
		if r.state.Changes, err = r.logs.Head(ctx); err == nil {
			r.state.Creates, err = r.logs.CreatesHead(ctx)
		}
		if err != nil {
			return err
		}
	}
	for !r.state.Walked {
		page, damaged, next, err := r.from.Page(ctx, r.state.After, pageRows)
		if err == nil {
			err = move.Sound(damaged)
		}
		if err == nil {
			err = r.to.Put(ctx, page)
		}
		r.state.After, r.state.Walked = next, next == ""
		if err == nil {
			err = r.save(ctx)
		}
		if err != nil {
			return err
		}
		r.result.Links += int64(len(page))
		r.Progress("links", r.result.Links, 0)
	}
	return nil
}

// follow writes what the logs say has changed, reads it back, and returns how many links that were.
func (r *relay) follow(ctx context.Context, from logs) (written int, err error) {
	for {
		before := r.state
		changes, at, err := from.Changes(ctx, r.state.Changes, logEntries)
		if err != nil {
			return written, r.trimmed(ctx, err)
		}
		keys := make([]link.Key, 0, len(changes))
		for _, c := range changes {
			if c.Key.Code != "" { // else it is no write of a link
				keys = append(keys, c.Key)
			}
		}
		n, err := r.refresh(ctx, from, keys)
		if err != nil {
			return written, err
		}
		created, then, err := from.Creates(ctx, r.state.Creates, logEntries)
		if err != nil {
			return written, r.trimmed(ctx, err)
		}
		if err := r.put(ctx, created); err != nil {
			return written, err
		}
		written += n + len(created)
		r.state.Changes, r.state.Creates = at, then
		if r.state.Changes == before.Changes && r.state.Creates == before.Creates {
			return written, nil
		}
		if err := r.save(ctx); err != nil {
			return written, err
		}
		r.Progress("changes", int64(written), 0)
		if len(changes) == 0 && len(created) == 0 {
			return written, nil
		}
	}
}

// trimmed has the next run read all links anew where the logs have not enough.
func (r *relay) trimmed(ctx context.Context, err error) error {
	if !errors.Is(err, link.ErrConflict) {
		return err
	}
	r.state.Walked, r.state.After, r.state.Changes, r.state.Creates = false, "", "", ""
	return errors.Join(fmt.Errorf("the logs of changes were trimmed, run this again: %w", err), r.save(ctx))
}

// refresh writes links as they are now.
func (r *relay) refresh(ctx context.Context, from logs, keys []link.Key) (n int, err error) {
	for chunk := range slices.Chunk(keys, link.MaxPage) {
		links, err := there(ctx, from, chunk)
		if err == nil {
			err = r.put(ctx, links)
		}
		if err != nil {
			return n, err
		}
		n += len(links)
	}
	return n, nil
}

// there returns those links that exist.
func there(ctx context.Context, from logs, keys []link.Key) ([]link.Link, error) {
	links, err := from.GetMany(ctx, keys)
	return slices.DeleteFunc(links, func(l link.Link) bool { return l.Key.Code == "" }), err
}

// put writes links and reads them back.
func (r *relay) put(ctx context.Context, links []link.Link) error {
	if len(links) == 0 {
		return nil
	}
	if err := r.to.Put(ctx, links); err != nil {
		return err
	}
	return r.to.Same(ctx, links)
}

// spent writes the links with max_clicks whose counters have changed: no log has every click.
func (r *relay) spent(ctx context.Context, from logs) (written int, err error) {
	keys, err := r.to.Limited(ctx)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(keys, link.MaxPage) {
		links, err := there(ctx, from, chunk)
		if err == nil {
			err = r.to.Same(ctx, links)
		}
		if errors.Is(err, coldcopy.ErrDiffers) {
			written += len(links)
			err = r.put(ctx, links)
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// catchUp brings the sink to the state of now.
func (r *relay) catchUp(ctx context.Context, from logs) (written int, err error) {
	written, err = r.follow(ctx, from)
	if err != nil {
		return written, err
	}
	n, err := r.spent(ctx, from)
	return written + n, err
}

// compare reads both sides in whole while servers write on: links of a page that differs, such as those of
// the last seconds, are written as they are now, and read back.
func (r *relay) compare(ctx context.Context) error {
	if _, err := r.catchUp(ctx, r.logs); err != nil {
		return err
	}
	var sum coldcopy.Digest
	for after := link.Cursor(""); ; {
		page, damaged, next, err := r.from.Page(ctx, after, link.MaxPage)
		if err == nil {
			err = move.Sound(damaged)
		}
		if err == nil {
			err = r.comparePage(ctx, page, &sum)
		}
		if err != nil {
			return err
		}
		r.Progress("comparing links", sum.Rows, 0)
		if after = next; after == "" {
			break
		}
	}
	r.result.Links, r.result.Digest = sum.Rows, sum.String()
	return nil
}

func (r *relay) comparePage(ctx context.Context, page []link.Link, sum *coldcopy.Digest) error {
	keys := make([]link.Key, len(page))
	for i := range page {
		keys[i] = page[i].Key
	}
	err := r.to.Same(ctx, page)
	if errors.Is(err, coldcopy.ErrDiffers) {
		if page, err = there(ctx, r.logs, keys); err == nil {
			err = r.put(ctx, page)
		}
	}
	for i := range page {
		d, bad := coldcopy.OfLink(&page[i])
		err = errors.Join(err, bad)
		sum.Add(d)
	}
	return err
}

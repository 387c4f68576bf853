package lists

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/abuse/lookalike"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Config is what [Open] needs.
type Config struct {
	Store  moderation.Lists  // nil = only what is built in
	Brands *lookalike.Signal // built-in names, and those of the operator's file; nil = none
	Random io.Reader         // of salts, normally crypto/rand.Reader
	Log    *slog.Logger      // nil = none
}

// Keeper holds the lists in memory. A create reads one immutable snapshot, which a change replaces
// in one step. It is safe for many goroutines.
type Keeper struct {
	cfg Config
	now atomic.Pointer[snapshot]

	mu       sync.Mutex
	lines    map[moderation.Kind]map[string]uint64 // guarded by mu, as all below: by name, with the number of the entry
	complete uint64                                // lines were loaded with all entries up to this one
	newest   map[moderation.Entity]uint64          // entries behind complete that lines contain
	changed  map[moderation.Kind]bool              // since the snapshot
	onChange []func()
	version  atomic.Uint64
}

// Open loads the lists.
func Open(ctx context.Context, cfg Config) (*Keeper, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{
		cfg: cfg, lines: map[moderation.Kind]map[string]uint64{}, newest: map[moderation.Entity]uint64{}, changed: map[moderation.Kind]bool{},
	}
	for _, kind := range moderation.ListKinds() {
		k.lines[kind], k.changed[kind] = map[string]uint64{}, true
	}
	k.now.Store(&snapshot{})
	if cfg.Store != nil {
		lines, complete, err := cfg.Store.Load(ctx)
		if err != nil {
			return nil, fmt.Errorf("load the lists of moderators: %w", err)
		}
		k.complete = complete
		for e, sequence := range lines {
			if of := k.lines[e.Kind]; of != nil { // a later release may have other kinds
				of[e.Name], k.newest[e] = sequence, sequence
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k, k.publish()
}

// Builtin returns the built-in lines of a list, without those that the operator's file removes.
func (k *Keeper) Builtin(kind moderation.Kind) []string {
	switch kind {
	case moderation.KindRefusedWord:
		return builtinWords()
	case moderation.KindLookAlike:
		names := ServiceNames()
		if k.cfg.Brands != nil {
			names = append(names, k.cfg.Brands.Names()...)
		}
		return names
	default:
		return nil
	}
}

// OneEdit reports whether aliases with one letter of a built-in look-alike wrong are refused too.
func (k *Keeper) OneEdit(kind moderation.Kind, line string) bool {
	return kind == moderation.KindLookAlike && k.cfg.Brands != nil && k.cfg.Brands.OneEdit(line)
}

// Disabled reports whether a built-in line is disabled.
func (k *Keeper) Disabled(kind moderation.Kind, line string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lines[kind][without+line] != 0
}

// Len returns how many lines a list has.
func (k *Keeper) Len(kind moderation.Kind) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.lines[kind])
}

// Lines returns lines of a list as moderation.Lists does.
func (k *Keeper) Lines(ctx context.Context, kind moderation.Kind, after string, n int) ([]moderation.Entry, error) {
	return k.cfg.Store.Lines(ctx, kind, after, n)
}

// changesAtOnce bounds what one transaction changes: two statements a line, while the end of the journal is
// locked, which a busy database has to finish within the time of a write.
const changesAtOnce = 250

// Change puts lines into a list (ActionList) or removes them (ActionUnlist), and returns the
// entries of those that changed something. They are in effect on this server when it returns, and
// on others when they have read the journal. All values are parsed before anything is written;
// more than changesAtOnce are written in several steps, and a repeated call completes what
// an error interrupted. Errors: InvalidError, those of the store.
func (k *Keeper) Change(ctx context.Context, now time.Time, actor string, action moderation.Action, kind moderation.Kind, values []Line, reason string) ([]moderation.Entry, error) {
	if err := moderation.CheckReason(reason); err != nil {
		return nil, err
	}
	entries, err := k.draft(now, actor, action, kind, values, reason)
	if err != nil {
		return nil, err
	}
	full := moderation.Invalid("value", "the lists are full: at most %d look-alikes, and %d entries of all lists", moderation.MaxLookAlikes, moderation.MaxListLines)
	if action == moderation.ActionList && !k.fits(kind, entries) {
		return nil, full
	}
	var all []moderation.Entry
	for page := range slices.Chunk(entries, changesAtOnce) {
		stored, err := k.cfg.Store.Change(ctx, page...)
		if errors.Is(err, moderation.ErrListsFull) {
			err = full
		}
		if err != nil {
			return all, fmt.Errorf("change the list %s: %w", kind, err)
		}
		all = append(all, stored...)
		for i := range stored {
			k.Learn(&stored[i])
		}
		if err := k.Publish(); err != nil {
			return all, err
		}
	}
	return all, nil
}

// fits reports whether lines can be added, by what this server knows: of many lines none is stored
// where not all can be. The store has the last word.
func (k *Keeper) fits(kind moderation.Kind, entries []moderation.Entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh, total := 0, 0
	for i := range entries {
		if k.lines[kind][entries[i].Entity.Name] == 0 {
			fresh++
		}
	}
	for _, of := range k.lines {
		total += len(of)
	}
	return total+fresh <= moderation.MaxListLines && (kind != moderation.KindLookAlike || len(k.lines[kind])+fresh <= moderation.MaxLookAlikes)
}

// draft returns the entries of a change.
func (k *Keeper) draft(now time.Time, actor string, action moderation.Action, kind moderation.Kind, values []Line, reason string) ([]moderation.Entry, error) {
	all, err := ParseAll(action, kind, values, k.Builtin(kind))
	if err != nil {
		return nil, err
	}
	entries := make([]moderation.Entry, 0, len(all))
	for _, of := range all {
		e := moderation.Entry{At: now.UTC().Truncate(time.Millisecond), Entity: of, Action: action, Safety: link.Clean, Actor: actor}
		if e.Reason, err = moderation.NewText(reason, k.cfg.Random); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Learn takes an entry of the journal that lists or unlists a line; Publish puts it into effect.
// Entries that are known are ignored, so that an older one never overtakes a newer one.
func (k *Keeper) Learn(e *moderation.Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.lines[e.Entity.Kind]
	if of == nil || e.Sequence <= k.complete || e.Sequence <= k.newest[e.Entity] {
		return
	}
	k.newest[e.Entity] = e.Sequence
	if e.Action == moderation.ActionList {
		of[e.Entity.Name] = e.Sequence
	} else {
		delete(of, e.Entity.Name)
	}
	k.changed[e.Entity.Kind] = true
}

// Publish lets creates see what was learned.
func (k *Keeper) Publish() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.publish()
}

// publish replaces the snapshot; mu is held.
func (k *Keeper) publish() error {
	if len(k.changed) == 0 {
		return nil
	}
	next, err := rebuild(k.now.Load(), k.lines, k.changed)
	if err != nil {
		return err
	}
	k.now.Store(next)
	allowed := k.changed[moderation.KindAllowedDestination]
	if clear(k.changed); !allowed {
		return nil
	}
	k.version.Add(1)
	for _, changed := range k.onChange {
		changed()
	}
	return nil
}

// OnChange has changed called, which must not block, each time that other destinations are allowed.
func (k *Keeper) OnChange(changed func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onChange = append(k.onChange, changed)
}

// Version changes with the allowed destinations.
func (k *Keeper) Version() uint64 { return k.version.Load() }

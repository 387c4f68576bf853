package reserve

import (
	"context"
	"sync"
	"time"

	"curt/internal/link"
)

const (
	// remembered is how long an alias is taken for taken without a look.
	remembered = time.Minute
	// mostRemembered bounds the aliases that are remembered, at about 1 KB each. Beyond it one makes
	// room for another.
	mostRemembered = 10_000
	// reconfirmed is how old a reservation is remembered to be before a create by a workspace that the store has
	// not refused asks again: the workspace may hold the alias by now, through another server.
	reconfirmed = time.Second
)

// known is what was found of an alias.
type known struct {
	link.Occupant

	others []link.Code // suggestions that were free
	asked  bool        // the store was asked for others
}

// entry is what is remembered of an alias.
type entry struct {
	known

	until time.Time // of this process's clock
	shown int       // how often suggestions were taken from others

	// Of a reservation: when the store last said so, and whose creates it has refused.
	confirmed time.Time
	refused   map[link.WorkspaceID]struct{} // nil = nobody's
}

// memory remembers aliases that are taken or held. A link keeps its alias for ever and a reservation ends at a
// time that is known, but for one that is given back, or becomes a link, at another server: that is seen a
// minute later at most.
type memory struct {
	mu      sync.Mutex
	aliases map[link.Key]*entry  // guarded by mu
	reads   map[link.Key]*read   // guarded by mu: those under way
	turns   map[link.Key]*writer // guarded by mu

	creating map[link.Key]chan struct{} // guarded by mu: closed when the first create of an alias has been answered
}

// read is a look at the store that callers share. The rest is valid once done is closed.
type read struct {
	done  chan struct{}
	found known
	err   error
	left  bool // whoever looked has left: found and err are of that
}

// writer is the turn to reserve an alias.
type writer struct {
	held  chan struct{} // capacity 1: full while somebody has the turn
	users int           // guarded by memory.mu: who has it or waits for it
}

func newMemory() *memory {
	return &memory{aliases: map[link.Key]*entry{}, reads: map[link.Key]*read{}, turns: map[link.Key]*writer{}, creating: map[link.Key]chan struct{}{}}
}

// recall returns what is remembered of an alias. What is left of a reservation counts down.
func (m *memory) recall(now time.Time, k link.Key) (known, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(now, k)
	if e == nil {
		return known{}, false
	}
	found := e.known
	if found.Held() {
		found.Reservation.Left = e.left(now)
	}
	return found, true
}

// entry returns what is remembered of an alias; nil = nothing. m.mu is held.
func (m *memory) entry(now time.Time, k link.Key) *entry {
	e := m.aliases[k]
	if e != nil && (!now.Before(e.until) || e.until.Sub(now) > remembered) { // the clock was set back
		delete(m.aliases, k)
		return nil
	}
	return e
}

// left is how long the reservation of an entry lasts.
func (e *entry) left(now time.Time) time.Duration {
	since := e.until.Add(-min(remembered, e.Reservation.Left))
	return max(0, e.Reservation.Left-now.Sub(since))
}

// keep remembers an alias, for a minute and no longer than until its end.
func (m *memory) keep(now time.Time, k link.Key, found known) {
	lasts := remembered
	if found.Held() {
		lasts = min(lasts, found.Reservation.Left)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.aliases) >= mostRemembered && m.aliases[k] == nil {
		m.makeRoom(now)
	}
	next := &entry{known: found, until: now.Add(lasts), confirmed: now}
	if e := m.aliases[k]; e != nil && found.Held() && e.Reservation.Workspace == found.Reservation.Workspace {
		next.refused = e.refused
	}
	m.aliases[k] = next
}

// refuse returns what a create of a workspace is answered without asking the store; nil = the store decides.
func (m *memory) refuse(now time.Time, w link.WorkspaceID, k link.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(now, k)
	if e == nil {
		return nil
	}
	if _, refused := e.refused[w]; e.Held() && !refused && now.Sub(e.confirmed) >= reconfirmed {
		e.confirmed = now // the others need not ask with this one
		return nil
	}
	found := e.Occupant
	if found.Held() {
		found.Reservation.Left = e.left(now)
	}
	return refusal(found, w)
}

// refused remembers that the store has refused a create of a workspace, and why.
func (m *memory) refused(now time.Time, w link.WorkspaceID, k link.Key, o link.Occupant) {
	m.note(now, k, o)
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.aliases[k]; e != nil && e.Held() {
		if e.refused == nil {
			e.refused = map[link.WorkspaceID]struct{}{}
		}
		e.refused[w] = struct{}{}
	}
}

// first lets the first create of an alias ask the store, while the others wait for what it learns. refuse is asked before and
// after. The caller calls done once the store has answered.
func (m *memory) first(ctx context.Context, k link.Key, refuse func() error) (done func(), err error) {
	if err := refuse(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	answered, wait := m.creating[k]
	if !wait {
		answered = make(chan struct{})
		m.creating[k] = answered
	}
	m.mu.Unlock()
	if !wait {
		return func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.creating, k)
			close(answered)
		}, nil
	}
	select {
	case <-answered:
		return func() {}, refuse() // where the first learnt nothing, all ask
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// makeRoom forgets aliases whose time is over, of a few that it meets, or else one of those. m.mu is held.
func (m *memory) makeRoom(now time.Time) {
	const few = 16
	met, some := 0, link.Key{}
	for some = range m.aliases { // in random order
		m.entry(now, some)
		if met++; met == few {
			break
		}
	}
	if len(m.aliases) >= mostRemembered {
		delete(m.aliases, some)
	}
}

// note remembers what has an alias, with the suggestions that were found before.
func (m *memory) note(now time.Time, k link.Key, o link.Occupant) {
	found := known{Occupant: o}
	m.mu.Lock()
	if e := m.entry(now, k); e != nil {
		found.others, found.asked = e.others, e.asked
	}
	m.mu.Unlock()
	m.keep(now, k, found)
}

func (m *memory) forget(k link.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.aliases, k)
}

// free returns Suggestions of others, which are not known to be taken by now. Callers get different ones in turn,
// so that a crowd that wants one alias does not meet again at the next.
func (m *memory) free(now time.Time, k link.Key, others []link.Code) (some []link.Code) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := 0
	if e := m.entry(now, k); e != nil {
		first = e.shown
		e.shown += Suggestions
	}
	for i := range others {
		code := others[(first+i)%len(others)]
		if m.entry(now, link.Key{Domain: k.Domain, Code: code}) == nil && len(some) < Suggestions {
			some = append(some, code)
		}
	}
	return some
}

// share runs look for all who ask for an alias at the same time. Whoever looks may leave: then another one
// looks.
func (m *memory) share(ctx context.Context, k link.Key, look func() (known, error)) (known, error) {
	for {
		r, mine := m.join(k)
		if mine {
			m.look(ctx, k, r, look)
			return r.found, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return known{}, context.Cause(ctx)
		}
		if !r.left {
			return r.found, r.err
		}
	}
}

func (m *memory) look(ctx context.Context, k link.Key, r *read, look func() (known, error)) {
	r.left = true // if look panics
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.reads, k)
		close(r.done)
	}()
	r.found, r.err = look()
	r.left = ctx.Err() != nil
}

// join returns the read of an alias that is under way, or a new one that is the caller's.
func (m *memory) join(k link.Key) (r *read, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r = m.reads[k]; r == nil {
		r, mine = &read{done: make(chan struct{})}, true
		m.reads[k] = r
	}
	return r, mine
}

// turn returns when it is the caller's turn to reserve an alias, which it must give back with done.
func (m *memory) turn(ctx context.Context, k link.Key) (done func(), err error) {
	m.mu.Lock()
	w := m.turns[k]
	if w == nil {
		w = &writer{held: make(chan struct{}, 1)}
		m.turns[k] = w
	}
	w.users++
	m.mu.Unlock()
	select {
	case w.held <- struct{}{}:
		return func() { <-w.held; m.leave(k, w) }, nil
	case <-ctx.Done():
		m.leave(k, w)
		return nil, context.Cause(ctx)
	}
}

func (m *memory) leave(k link.Key, w *writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.users--; w.users == 0 {
		delete(m.turns, k)
	}
}

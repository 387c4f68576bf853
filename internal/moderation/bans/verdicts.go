package bans

import (
	"sync"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Verdicts are the decisions about destinations in memory. They are safe for many goroutines.
type Verdicts struct {
	mu  sync.RWMutex
	all map[moderation.Hash]map[link.WorkspaceID]moderation.Entry // by digest and scope; guarded by mu

	revoked []func(w link.WorkspaceID, digest moderation.Hash) // guarded by mu
}

// OnRevoked has revoked called, which must not block, each time that a destination is refused which some
// decision allowed; w is empty for all workspaces.
func (v *Verdicts) OnRevoked(revoked func(w link.WorkspaceID, digest moderation.Hash)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.revoked = append(v.revoked, revoked)
}

// NewVerdicts returns the decisions of entries.
func NewVerdicts(entries ...moderation.Entry) *Verdicts {
	v := &Verdicts{all: map[moderation.Hash]map[link.WorkspaceID]moderation.Entry{}}
	for _, e := range entries {
		v.Put(e)
	}
	return v
}

// Put adds a decision, unless a later one of the same scope is known.
func (v *Verdicts) Put(e moderation.Entry) {
	scope, digest, ok := e.Entity.Destination()
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all[digest] == nil {
		v.all[digest] = map[link.WorkspaceID]moderation.Entry{}
	}
	if e.Sequence <= v.all[digest][scope].Sequence {
		return
	}
	allowed := false
	for _, before := range v.all[digest] {
		allowed = allowed || moderation.Allows(before.Safety)
	}
	e.Reason, e.Evidence = moderation.Text{}, moderation.Text{} // the journal has them
	v.all[digest][scope] = e
	for i := 0; i < len(v.revoked) && allowed && !moderation.Allows(e.Safety); i++ {
		v.revoked[i](scope, digest)
	}
}

// Of returns the newest decision about a URL that holds for a workspace.
func (v *Verdicts) Of(w link.WorkspaceID, url string) (verdict moderation.Entry, decided bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if len(v.all) == 0 {
		return verdict, false
	}
	scopes := v.all[moderation.DigestOf(url)]
	own, everyone := scopes[w], scopes[""]
	if everyone.Sequence > own.Sequence {
		own = everyone
	}
	return own, own.Sequence != 0
}

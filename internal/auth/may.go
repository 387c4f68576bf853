package auth

import (
	"fmt"
	"slices"

	"curt/internal/link"
)

// Action is what a principal asks to do.
type Action uint8

// The actions.
const (
	Unrestricted Action = iota // what everybody may: report a link, see one's own rights
	CreateLink                 // and ask which aliases are free
	ReadLink                   // its fields, and lists of links
	ChangeLink                 // its fields, delete it, and appeal for it
	ReadStats
	ShareStats // hand out an address that shows statistics
	EndShare   // end what was shared
	UseJob     // long work; what a job does is another action
	ManageKeys
	Moderate // decide about links, bans, reports and appeals, and read what was decided
	Operate  // see the health of the server
)

// Scopes are those that an action asks for, of which one is enough; none = everybody may.
// Admin stands for each.
func (a Action) Scopes() []Scope {
	switch a {
	case Unrestricted:
		return nil
	case CreateLink, ChangeLink:
		return []Scope{LinksWrite}
	case ReadLink:
		return []Scope{LinksRead}
	case ReadStats, ShareStats:
		return []Scope{StatsRead}
	case UseJob:
		return []Scope{LinksRead, LinksWrite}
	case EndShare:
		return []Scope{StatsRead, LinksWrite}
	case ManageKeys, Moderate, Operate:
	}
	return []Scope{Admin}
}

// Resource is whose thing an action is about. The zero Resource is not known yet, or is about
// to be the principal's own.
type Resource struct {
	workspace link.WorkspaceID
	all       bool
}

// In is a thing of a workspace.
func In(w link.WorkspaceID) Resource { return Resource{workspace: w} }

// Everywhere is the things of all workspaces, and of none.
func Everywhere() Resource { return Resource{all: true} }

// May returns nil where a principal may do something. The error wraps link.ErrNotFound for a
// thing that the principal does not see, because that is answered like what does not exist;
// ErrUnauthenticated where a key is the way out; or ErrForbidden, with the scope that is missing.
func May(p Principal, a Action, r Resource) error {
	if r.workspace != "" && !p.sees(r.workspace) {
		return fmt.Errorf("belongs to another workspace: %w", link.ErrNotFound)
	}
	needed := a.Scopes()
	switch {
	case p.isAdmin() || !r.all && (len(needed) == 0 || slices.ContainsFunc(needed, p.has)):
		return nil
	case p.IsAnonymous():
		return ErrUnauthenticated
	case r.all:
		needed = []Scope{Admin}
	}
	return fmt.Errorf("%w: it lacks the scope %s", ErrForbidden, needed[0])
}

// Within narrows what a principal asks for to the workspaces that it sees: "" = all.
func Within(p Principal, asked link.WorkspaceID) link.WorkspaceID {
	if p.isAdmin() {
		return asked
	}
	return p.Workspace
}

func (p Principal) isAdmin() bool { return slices.Contains(p.Scopes, Admin) }

func (p Principal) has(s Scope) bool { return slices.Contains(p.Scopes, s) }

func (p Principal) sees(w link.WorkspaceID) bool {
	return p.isAdmin() || !p.IsAnonymous() && p.Workspace == w
}

package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// EventKind says what happened to links. It is stored; a kind that a release does not know is
// one of a later release.
type EventKind string

// The kinds of events that a link store appends by itself. [EventLog] takes others.
const (
	WasCreated   EventKind = "created" // with a Chosen code
	WasUpdated   EventKind = "updated"
	WasDeleted   EventKind = "deleted"
	WasExhausted EventKind = "exhausted" // the last of MaxClicks was taken
)

// WasExpired is the kind of the entries that announce links which expired. They are appended, with
// up to MaxEventKeys keys each: at least one for each end of a link, some seconds after it.
const WasExpired EventKind = "expired"

// EventLog is a Store whose change log says what happened.
type EventLog interface {
	// Events is Changes with all that the entries say.
	Events(ctx context.Context, after Position, n int) ([]Event, Position, error)

	// ExpiryChanges is Events for who needs those links alone that may expire at another time than before
	// an entry: it goes over up to n entries, and returns the keys of their links, each once and in the
	// order of the entries. A position of Events is one of ExpiryChanges, with the same errors. more = false:
	// the end was reached.
	ExpiryChanges(ctx context.Context, after Position, n int) (keys []Key, next Position, more bool, err error)

	// Append appends one entry that is no write of a link: e without Change, At and Fields. It is
	// durable when nil is returned. ErrInvalid for more than MaxEventKeys keys or none, a kind
	// that a store appends by itself, and texts that are too long.
	Append(ctx context.Context, e Event) error
}

// CreateLog is a Store that tells which links with Counted codes became visible: their creates are
// not in the change log, where they would wait for each other.
type CreateLog interface {
	// Creates returns up to n such links, as they stand now, that became visible after a position, and
	// the position behind them; what was created in one transaction may come in any order. A link is
	// passed over where it is damaged, and comes again where its transaction is of the position itself.
	// A create that commits late comes when it is visible, whatever its id. An empty page with another
	// position is not the end. ErrConflict: the position is of another database, or what followed it
	// was trimmed; List has all links.
	Creates(ctx context.Context, after Position, n int) ([]Link, Position, error)

	// CreatesHead returns a position that every create which is not visible yet lies behind.
	CreatesHead(ctx context.Context) (Position, error)

	// CreatesEnded is Creates for who needs those alone that expired: it goes over up to n links, and
	// returns the keys of those among them that are active now and expired at or before a time. A
	// position of Creates is one of CreatesEnded. more = false: the end was reached.
	CreatesEnded(ctx context.Context, after Position, by time.Time, n int) (keys []Key, next Position, more bool, err error)
}

// ExpiryChangesIn returns the links of events that EventLog.ExpiryChanges names.
func ExpiryChangesIn(events []Event) (keys []Key) {
	seen := map[Key]bool{}
	for i := range events {
		if e := &events[i]; e.changesExpiry() && !seen[e.Key] {
			seen[e.Key] = true
			keys = append(keys, e.Key)
		}
	}
	return keys
}

func (e *Event) changesExpiry() bool {
	switch e.Kind {
	case "": // of an earlier release
		return e.Key != Key{}
	case WasCreated, WasUpdated:
		for i := range e.Fields {
			if name := e.Fields[i].Name; name == "expires_at" || name == "status" || name == "" {
				return true
			}
		}
		return len(e.Fields) == 0 // it does not say
	default:
		return false
	}
}

// ReadExpiryChanges is EventLog.ExpiryChanges of a log by its Events.
func ReadExpiryChanges(ctx context.Context, log EventLog, after Position, n int) (keys []Key, next Position, more bool, err error) {
	events, next, err := log.Events(ctx, after, n)
	return ExpiryChangesIn(events), next, len(events) == n, err
}

// MaxEventKeys is how many links one appended entry may name.
const MaxEventKeys = 1000

// Event is an entry of the change log. One without Kind was written by an older release: only
// its Change is known.
type Event struct {
	Change

	Kind      EventKind
	ID        ID
	Workspace WorkspaceID
	Principal string    // who did it: the id of a key, or another actor's name; "" = nobody known
	At        time.Time // when it was appended, by the store's clock
	Region    string    // where it was written; "" = there is one region
	Fields    []Was     // of WasUpdated, none once the link is deleted; of WasCreated [CreatedFields], or none
	Keys      []Key     // of an appended entry
}

// Was is a field that changed.
type Was struct {
	Name string          `json:"name"`          // as in the table of fields; "" = of a later release
	Old  json.RawMessage `json:"old,omitempty"` // what it was; none for a secret
}

// Edit is what a Replace says in the change log beside the link.
type Edit struct {
	Principal string
	Fields    []Was // [Changed]; of a tombstone none are stored
}

// CreatedFields returns what an entry of WasCreated says of the link: whether it has an end. A store that says
// nothing has readers look at the link.
func CreatedFields(l *Link) []Was {
	if l.Expires.IsZero() {
		return []Was{{Name: "created_at"}}
	}
	return []Was{{Name: "created_at"}, {Name: "expires_at"}}
}

// Changed returns the fields that differ between two versions of a link, but for those that
// change with each version.
func Changed(old, now *Link) (all []Was) {
	if now.Status == Deleted {
		return nil
	}
	for i := range fields {
		f := &fields[i]
		if f.Fixed || f.Counter || f.Name == "version" || f.Name == "updated_at" || f.equal(old, now) {
			continue
		}
		was := Was{Name: f.Name}
		if f.Kind != Secret {
			was.Old, _ = json.Marshal(f.Of(old)) // every type of a field can be marshalled
		}
		all = append(all, was)
	}
	if old.Later != now.Later {
		all = append(all, Was{})
	}
	return all
}

// FieldsText returns the changed fields as stores keep them; "" for none.
func (e *Event) FieldsText() (string, error) {
	if len(e.Fields) == 0 {
		return "", nil
	}
	text, err := json.Marshal(e.Fields)
	if err != nil {
		return "", fmt.Errorf("changed fields: %w", err)
	}
	return string(text), nil
}

// Appendable returns ErrInvalid, wrapped with the reason, for an entry that Append refuses.
func (e *Event) Appendable() error {
	switch {
	case e.Kind == "" || e.Kind == WasCreated || e.Kind == WasUpdated || e.Kind == WasDeleted || e.Kind == WasExhausted || len(e.Kind) > MaxName:
		return fmt.Errorf("%w: kind %q of an appended entry", ErrInvalid, e.Kind)
	case len(e.Keys) == 0 || len(e.Keys) > MaxEventKeys:
		return fmt.Errorf("%w: %d keys of an appended entry, want 1 to %d", ErrInvalid, len(e.Keys), MaxEventKeys)
	case e.Change != (Change{}) || len(e.Fields) > 0 || !e.At.IsZero():
		return fmt.Errorf("%w: an appended entry cannot be a link write, and the store sets its time", ErrInvalid)
	case len(e.Workspace) > MaxName || len(e.Principal) > MaxName || len(e.Region) > MaxName:
		return fmt.Errorf("%w: workspace, principal or region of an appended entry", ErrInvalid)
	}
	for _, k := range e.Keys {
		if err := k.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// KeysText returns the keys of an appended entry as stores keep them: domains and codes in turn;
// "" for none.
func (e *Event) KeysText() (string, error) {
	if len(e.Keys) == 0 {
		return "", nil
	}
	names := make([]string, 0, 2*len(e.Keys))
	for _, k := range e.Keys {
		names = append(names, string(k.Domain), string(k.Code))
	}
	text, err := json.Marshal(names)
	if err != nil {
		return "", fmt.Errorf("keys of an entry: %w", err)
	}
	return string(text), nil
}

// Parse sets Fields and Keys from what FieldsText and KeysText wrote.
func (e *Event) Parse(fields, keys string) error {
	var names []string
	if err := errors.Join(parse(fields, &e.Fields), parse(keys, &names)); err != nil {
		return err
	}
	for i := 1; i < len(names); i += 2 {
		e.Keys = append(e.Keys, Key{Domain: Domain(names[i-1]), Code: Code(names[i])})
	}
	return nil
}

func parse(text string, to any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("%w: an entry of the change log: %w", ErrUnavailable, err)
	}
	return nil
}

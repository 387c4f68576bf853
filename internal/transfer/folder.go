package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/exchange"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Folder puts links into a store without a server, as they are. Import tells which were there already, and as what.
type Folder struct {
	Links interface {
		Import(ctx context.Context, links []link.Link) ([]link.Result, error)
	}
	Journal moderation.Journal
}

var _ Sink = (*Folder)(nil)

// Put implements Sink.
func (f *Folder) Put(ctx context.Context, rows []exchange.Row, _ string) ([]Outcome, error) {
	outcomes := make([]Outcome, len(rows))
	var links []link.Link
	var wanted []int
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line = row.Line
		err := row.Err
		var l link.Link
		if err == nil {
			l, err = whole(&row.Record)
		}
		if err != nil {
			o.Error = err.Error()
			continue
		}
		o.Code = string(l.Key.Code)
		links, wanted = append(links, l), append(wanted, i)
	}
	if len(links) == 0 {
		return outcomes, nil
	}
	if err := f.decide(ctx, links); err != nil {
		return nil, err
	}
	stored, err := f.Links.Import(ctx, links)
	if err != nil {
		return nil, err
	}
	for n, i := range wanted {
		switch err := stored[n].Err; {
		case errors.Is(err, link.ErrExists):
			outcomes[i] = Outcome{Line: rows[i].Line, Error: "the code is taken by another link"}
		case err != nil:
			outcomes[i] = Outcome{Line: rows[i].Line, Error: err.Error()}
		case stored[n].Found:
			found(&outcomes[i], links[n], stored[n].Link)
		}
	}
	return outcomes, nil
}

// found is the outcome of a link whose id and code are in the store already. Only clicks that were spent there since
// make no difference.
func found(o *Outcome, wanted, stored link.Link) {
	wanted, err := wanted.Imported()
	var same [2]coldcopy.Digest
	for i, l := range []link.Link{wanted.Normal(), stored.Normal()} {
		l.CodeKind, l.Spent = link.Chosen, 0
		var bad error
		same[i], bad = coldcopy.OfLink(&l)
		err = errors.Join(err, bad)
	}
	switch {
	case err != nil:
		*o = Outcome{Line: o.Line, Error: err.Error()}
	case same[0] != same[1]:
		*o = Outcome{Line: o.Line, Error: fmt.Sprintf("conflict: the link exists with other content (version %d, and %d in the file)", stored.Version, wanted.Version)}
	default:
		o.Skipped = Exists
	}
}

// decide writes into the journal what was decided about links where they come from, so
// that it stands here too; what an earlier run has written is not written again.
func (f *Folder) decide(ctx context.Context, links []link.Link) error {
	var entries []moderation.Entry
	for i := range links {
		l := &links[i]
		if l.Safety == link.Clean || l.Status == link.Deleted {
			continue
		}
		if _, err := f.Journal.EffectiveDecision(ctx, l.ID); !errors.Is(err, moderation.ErrNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		reason, err := moderation.NewText("decided where the link was imported from", rand.Reader)
		if err != nil {
			return err
		}
		entries = append(entries, moderation.Entry{
			At: time.Now().UTC().Truncate(time.Millisecond), Entity: moderation.OfLink(l.Key), Link: l.ID,
			Action: moderation.ActionDecide, Safety: l.Safety, Actor: "import", Reason: reason,
		})
	}
	for batch := range slices.Chunk(entries, moderation.MaxAppend) {
		if _, err := f.Journal.Append(ctx, batch...); err != nil {
			return fmt.Errorf("write decisions: %w", err)
		}
	}
	return nil
}

// whole returns the link of an export of ours.
func whole(r *exchange.Record) (link.Link, error) {
	if !r.IsWhole() {
		return link.Link{}, errors.New("only an export of curt can go into a store directly; import others through a server")
	}
	return r.Link()
}

package coldreviews

import (
	"context"
	"fmt"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Destinations implements moderation.Destinations.
type Destinations struct{ db coldsql.DB }

var _ moderation.Destinations = Destinations{}

const (
	destinationColumns = `id, workspace, digest, url, created_by, network, score, evidence, refused, first, last, decided, everyone, decided_at, sequence, erased`

	sqlDestination      = `SELECT ` + destinationColumns + ` FROM destinations WHERE id = $1`
	sqlKnownDestination = `SELECT 1 FROM destinations WHERE digest = $1 AND workspace = $2`
	sqlOpenOfWorkspace  = `SELECT 1 FROM destinations WHERE workspace = $1 AND decided = 0 LIMIT $2`
	sqlOpenOfNetwork    = `SELECT 1 FROM destinations WHERE network = $1 AND decided = 0 LIMIT $2`

	sqlRefuseDestination = `INSERT INTO destinations AS old (id, workspace, digest, url, created_by, network, score, evidence, refused, first, last)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
	ON CONFLICT (digest, workspace) DO UPDATE SET refused = old.refused + excluded.refused, last = excluded.last RETURNING id, decided, decided_at`
	sqlReopenDestination = `UPDATE destinations SET decided = 0, everyone = {false}, url = $2, first = $3, erased = {false} WHERE id = $1`
	sqlSameDestination   = `SELECT id FROM destinations WHERE digest = $1 AND id <> $2 AND sequence < $3 ORDER BY workspace`
	sqlDecisionOf        = `SELECT decided FROM destinations WHERE id = $1`
	sqlDecideDestination = `UPDATE destinations SET decided = $2, everyone = $3, decided_at = $4, sequence = $5 WHERE id = $1 AND sequence < $5`

	sqlExpiredDestinations = `SELECT id, decided FROM destinations WHERE erased = {false} AND {greatest}(first, decided_at) < $1
	ORDER BY {greatest}(first, decided_at) LIMIT $2`
	sqlEraseDestination = `UPDATE destinations SET url = '', created_by = '', network = 0, evidence = '', erased = {true} WHERE id = $1`
	sqlEraseCaseHost    = `UPDATE cases SET host = '' WHERE link = $1`
	sqlDropDestination  = `DELETE FROM destinations WHERE id = $1 AND decided = 0`
	sqlDropCases        = `DELETE FROM cases WHERE link = $1`
	sqlDropAppeals      = `DELETE FROM appeals WHERE link = $1`
)

// Refuse implements moderation.Destinations. A flood beyond the bounds reads, and takes no turn of
// those who write.
func (s Destinations) Refuse(ctx context.Context, all []moderation.Refusal, b moderation.Bounds) ([]link.ID, error) {
	total, some := len(all), false
	if all = all[:min(total, moderation.MaxRefusals)]; total == 0 {
		return nil, nil
	}
	var ids []link.ID
	err := s.db.Read(ctx, func(t coldsql.Tx) error {
		left, err := roomLeft(t, &all[0], b)
		some = left > 0
		for i := 0; i < len(all) && !some && err == nil; i++ {
			some, err = coldsql.Exists(t, sqlKnownDestination, all[i].Digest[:], string(all[i].Workspace))
		}
		return err
	})
	if err == nil && some {
		err = s.db.Write(ctx, 2*len(all), func(t coldsql.Tx) (err error) {
			ids, err = refuse(t, all, b)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open the cases of refused creates: %w", err)
	}
	return append(ids, make([]link.ID, total-len(ids))...), nil
}

// roomLeft returns how many destinations more may wait.
func roomLeft(t coldsql.Tx, r *moderation.Refusal, b moderation.Bounds) (left int64, err error) {
	left = int64(b.Account)
	if err = coldsql.Each(t, sqlOpenOfWorkspace, func(r *coldsql.Row) { left -= r.Int() }, string(r.Workspace), left); err != nil || r.Network == 0 {
		return left, err
	}
	ofNetwork := int64(b.Network)
	err = coldsql.Each(t, sqlOpenOfNetwork, func(r *coldsql.Row) { ofNetwork -= r.Int() }, int64(r.Network), ofNetwork)
	return min(left, ofNetwork), err
}

func refuse(t coldsql.Tx, all []moderation.Refusal, b moderation.Bounds) ([]link.ID, error) {
	ids := make([]link.ID, len(all))
	left, err := roomLeft(t, &all[0], b)
	if err != nil {
		return nil, err
	}
	for i := range all {
		r := &all[i]
		known, err := coldsql.Exists(t, sqlKnownDestination, r.Digest[:], string(r.Workspace))
		if err != nil {
			return nil, err
		}
		if !known && left <= 0 {
			continue
		}
		var decided link.Safety
		var at time.Time
		_, err = coldsql.One(t, sqlRefuseDestination, func(row *coldsql.Row) { ids[i], decided, at = row.ID(), link.Safety(row.Int()), row.Time() }, r.ID, string(r.Workspace), r.Digest[:], coldsql.Text(r.URL), r.CreatedBy,
			int64(r.Network), int64(r.Score), coldsql.Text(r.Evidence), int64(r.Refused), link.Millis(r.First))
		if err != nil {
			return nil, err
		}
		switch {
		case ids[i] == r.ID:
			left--
		case decided != 0 && moderation.Allows(decided) && r.First.Sub(at) > moderation.AllowedFor:
			if _, err := t.Exec(sqlReopenDestination, ids[i], coldsql.Text(r.URL), link.Millis(r.First)); err != nil {
				return nil, err
			}
		default:
			continue
		}
		_, err = joinCase(t, &moderation.Opening{
			ID: r.ID, Link: moderation.Ref{ID: ids[i]}, Facts: moderation.Facts{Workspace: r.Workspace, Host: r.Host},
			Source: moderation.FromBlock, Score: r.Score, At: r.First, Due: r.Due,
		})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// closings are a Closing and, of a decision for all workspaces, those of the others.
func closings(t coldsql.Tx, c *moderation.Closing) ([]moderation.Closing, error) {
	all := []moderation.Closing{*c}
	if !c.Everyone {
		return all, nil
	}
	other := *c
	other.Answer = ""
	err := coldsql.Each(t, sqlSameDestination, func(r *coldsql.Row) {
		other.Link = moderation.Ref{ID: r.ID()}
		all = append(all, other)
	}, c.Digest[:], c.Link.ID, int64(c.Sequence))
	return all, err
}

// decideDestination is what a Closing says of a destination.
func decideDestination(t coldsql.Tx, c *moderation.Closing) error {
	if !c.Link.IsDestination() {
		return nil
	}
	_, err := t.Exec(sqlDecideDestination, c.Link.ID, int64(c.Safety), c.Everyone, link.Millis(c.At), int64(c.Sequence))
	return err
}

// Destination implements moderation.Destinations.
func (s Destinations) Destination(ctx context.Context, id link.ID) (d moderation.Destination, err error) {
	err = s.db.Read(ctx, func(t coldsql.Tx) error {
		found, err := coldsql.One(t, sqlDestination, func(r *coldsql.Row) {
			d.ID, d.Workspace = r.ID(), link.WorkspaceID(r.Text())
			r.Fill(d.Digest[:], false)
			d.URL, d.CreatedBy, d.Network, d.Score, d.Evidence = r.Text(), r.Text(), uint64(r.Int()), int(r.Int()), r.Text()
			d.Refused, d.First, d.Last = int(r.Int()), r.Time(), r.Time()
			d.Decided, d.Everyone, d.At, d.Sequence, d.Erased = link.Safety(r.Int()), r.Bool(), r.Time(), uint64(r.Int()), r.Bool()
		}, id)
		if err == nil && !found {
			err = moderation.ErrNoDestination
		}
		return err
	})
	if err != nil {
		return moderation.Destination{}, fmt.Errorf("find case %s: %w", id, err)
	}
	return d, nil
}

// Expire implements moderation.Destinations.
func (s Destinations) Expire(ctx context.Context, before time.Time, n int) (int, error) {
	var done int
	err := s.db.Write(ctx, 3*n, func(t coldsql.Tx) error {
		done = 0
		decided := map[link.ID]bool{}
		err := coldsql.Each(t, sqlExpiredDestinations, func(r *coldsql.Row) {
			id := r.ID()
			decided[id] = r.Int() != 0
		}, before.UnixMilli(), int64(n))
		if err != nil {
			return err
		}
		for id, remains := range decided {
			if err := erase(t, id, remains); err != nil {
				return err
			}
			done++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("erase old destinations: %w", err)
	}
	return done, nil
}

// erase erases a destination: of one that was decided about the digest and the decision remain.
func erase(t coldsql.Tx, id link.ID, remains bool) error {
	statements := []string{sqlDropDestination, sqlDropCases, sqlDropAppeals}
	if remains {
		statements = []string{sqlEraseDestination, sqlEraseCaseHost, sqlEraseAppeals}
	}
	for i, statement := range statements {
		changed, err := t.Exec(statement, id)
		if err != nil || i == 0 && changed == 0 { // a moderator was faster
			return err
		}
	}
	return nil
}

// EraseDestination implements moderation.Destinations.
func (s Destinations) EraseDestination(ctx context.Context, id link.ID) error {
	err := s.db.Write(ctx, 3, func(t coldsql.Tx) error {
		var remains bool
		found, err := coldsql.One(t, sqlDecisionOf, func(r *coldsql.Row) { remains = r.Int() != 0 }, id)
		if err == nil && !found {
			err = moderation.ErrNoDestination
		}
		if err != nil {
			return err
		}
		return erase(t, id, remains)
	})
	if err != nil {
		return fmt.Errorf("erase case %s: %w", id, err)
	}
	return nil
}

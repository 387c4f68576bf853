package moderation

import (
	"context"
	"fmt"
	"time"

	"curt/internal/link"
)

const (
	// previewTime bounds a preview: whoever asks waits for it.
	previewTime = 2 * time.Second
	// sampleSize is how many links a preview shows.
	sampleSize = 10
)

// Preview is what a ban would mean for the links that there are.
type Preview struct {
	Entity   Entity // as the journal would know it
	Links    uint64 // that it means; at least so many unless Complete
	Seen     uint64 // links that were looked at, the newest first
	Complete bool   // all were
	Sample   []link.Link
}

// Preview counts the links that a ban of e would mean, without banning anything. It looks
// at the newest first, for two seconds at most. Errors: InvalidError, those of the links.
func (m *Moderator) Preview(ctx context.Context, e Entity) (Preview, error) {
	e, err := ParseEntity(e.Kind, e.Name)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Entity: e}
	switch e.Kind {
	case KindNetwork: // no link says from where it was made
		p.Complete = true
		return p, nil
	case KindLink:
		k, _ := e.Key()
		l, err := m.cfg.Links.Get(ctx, k)
		if err != nil {
			return Preview{}, fmt.Errorf("preview: %w", err)
		}
		p.add(&l)
		p.Seen, p.Complete = 1, true
		return p, nil
	case KindWorkspace, KindKey, KindHost, KindDomain:
	}
	defer m.cfg.Work()()
	set, w := meant(e), Walk{Entities: []Entity{e}}
	for began, at := m.cfg.Now(), link.Cursor(""); ; {
		err := m.cfg.Aside(ctx, func(ctx context.Context) error {
			page, err := m.cfg.Links.List(ctx, w.filter(), link.Page{After: at, Limit: walkPage})
			p.count(page.Links, set)
			at = page.Next
			return err
		})
		if err != nil {
			return Preview{}, fmt.Errorf("preview: %w", err)
		}
		if at == "" || m.cfg.Now().Sub(began) >= previewTime {
			p.Complete = at == ""
			return p, nil
		}
	}
}

// count adds those of a page that the ban means.
func (p *Preview) count(page []link.Link, set *banSet) {
	for i := range page {
		if p.Seen++; set.means(&page[i]) > link.Clean {
			p.add(&page[i])
		}
	}
}

func (p *Preview) add(l *link.Link) {
	if p.Links++; len(p.Sample) < sampleSize {
		p.Sample = append(p.Sample, *l)
	}
}

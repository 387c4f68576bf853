package figures

import "context"

// Turns are what the tests of rounds need.
type Turns struct{ all []turn }

// Add adds a turn that only runs f.
func (t *Turns) Add(name string, f func()) {
	t.all = append(t.all, turn{name, func(context.Context) (sample, error) { f(); return sample{}, nil }})
}

// Rounds runs the turns.
func (t *Turns) Rounds(ctx context.Context, b *Bench) error {
	_, err := b.rounds(ctx, t.all...)
	return err
}

// What the tests of requests need.
var (
	Creates   = creates
	Redirects = redirects
	Popular   = popular
	SizeName  = sizeName
)

package moderator

import "context"

// Step does what Run does once.
func (m *Moderator) Step(ctx context.Context) (more bool, err error) { return m.follower.step(ctx) }

// Keep stores the progress, as Run does now and then.
func (m *Moderator) Keep(ctx context.Context) error { return m.follower.keep(ctx) }

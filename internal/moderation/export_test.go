package moderation

import "context"

// Encode returns what the hash of e is taken of.
func (e Entry) Encode(before Hash) []byte { return e.encode(nil, before) }

// Step does what Run does once.
func (m *Moderator) Step(ctx context.Context) (more bool, err error) { return m.step(ctx) }

// Keep stores the progress, as Run does now and then.
func (m *Moderator) Keep(ctx context.Context) error { return m.keep(ctx) }

package dynamodb

import (
	"context"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/feed"
	"curt/internal/link"
)

// Stopped is a writer that was stopped when all of its create was ready to be sent; commit sends it.
func (s *Links) Stopped(l link.Link) (commit func(context.Context) error, err error) {
	send, err := s.prepare(&l, claimed{})
	return func(ctx context.Context) error { return send(ctx, nil) }, err
}

// Client is what the store asks DynamoDB with.
func (s *Links) Client() *ddb.Client { return s.db }

// Fed is a store with the positions of its followers as other stores have them.
type Fed struct {
	*Links
	Patient func() // called before the head of creates is read
	Created func() // called behind each create
}

func (f Fed) Create(ctx context.Context, l link.Link) (link.Link, error) {
	l, err := f.Links.Create(ctx, l)
	f.Created()
	return l, err
}

func (f Fed) Followers() feed.Positions[link.Position] { return f.Links.Followers() }

func (f Fed) CreateFollowers() feed.Positions[link.Position] { return f.Links.Followers() }

func (f Fed) BothFollowers() feed.Positions[link.Position] { return f.Links.Followers() }

func (f Fed) CreatesHead(ctx context.Context) (link.Position, error) {
	f.Patient()
	return f.Links.CreatesHead(ctx)
}

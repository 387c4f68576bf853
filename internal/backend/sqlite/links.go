package sqlite

import (
	"context"
	"time"

	"curt/internal/link"
)

// LinksConfig says where and how curt.db is opened. The zero value of every
// field but Path is usable.
type LinksConfig struct {
	Path string // of curt.db; its folder must exist

	// Synchronous is FULL unless set. NORMAL loses acknowledged links in a power
	// cut and exists only as the control of the test that proves FULL does not.
	Synchronous string

	WriterCacheKiB int    // page cache of the writing connection; default 8 MiB
	ReaderCacheKiB int    // page cache of each reading connection; default 1 MiB
	Readers        int    // reading connections; default 4
	ChangeLog      uint64 // changes kept for readers of Changes; default 1,000,000
}

// Links is curt.db.
type Links struct{}

// OpenLinks opens or creates curt.db.
func OpenLinks(_ context.Context, _ LinksConfig) (*Links, error) {
	return nil, link.ErrUnavailable
}

func (s *Links) Lookup(_ context.Context, _ link.Key) (link.Target, error) {
	return link.Target{}, link.ErrUnavailable
}

func (s *Links) Get(_ context.Context, _ link.Key) (link.Link, error) {
	return link.Link{}, link.ErrUnavailable
}

func (s *Links) Create(_ context.Context, _ link.Link) (link.Link, error) {
	return link.Link{}, link.ErrUnavailable
}

func (s *Links) Replace(_ context.Context, _ link.Link) (link.Link, error) {
	return link.Link{}, link.ErrUnavailable
}

func (s *Links) List(_ context.Context, _ link.Filter, _ link.Page) (link.Slice, error) {
	return link.Slice{}, link.ErrUnavailable
}

func (s *Links) Expired(_ context.Context, _ link.Cursor, _ time.Time, _ int) ([]link.Key, link.Cursor, error) {
	return nil, "", link.ErrUnavailable
}

func (s *Links) Changes(_ context.Context, _ link.Sequence, _ int) ([]link.Change, error) {
	return nil, link.ErrUnavailable
}

func (s *Links) Head(_ context.Context) (link.Sequence, error) { return 0, link.ErrUnavailable }

func (s *Links) Unminted(_ context.Context, _ link.Cursor, _ int) ([]link.Key, link.Cursor, error) {
	return nil, "", link.ErrUnavailable
}

func (s *Links) Close() error { return nil }

func (s *Links) CreateMany(_ context.Context, _ []link.Link) ([]link.Result, error) {
	return nil, link.ErrUnavailable
}

func (s *Links) Spend(_ context.Context, _ link.Key, _ uint64) (uint64, error) {
	return 0, link.ErrUnavailable
}

func (s *Links) FindByDestination(_ context.Context, _ link.WorkspaceID, _ string, _ time.Time) (link.Link, error) {
	return link.Link{}, link.ErrUnavailable
}

func (s *Links) Lease(_ context.Context, _ string, _ uint64) (uint64, error) {
	return 0, link.ErrUnavailable
}

func (s *Links) Leased(_ context.Context, _ string) (uint64, error) { return 0, link.ErrUnavailable }

func (s *Links) Skip(_ context.Context, _ string, _ uint64) error { return link.ErrUnavailable }

// CodeKey returns the key of the permutation, made at the first start.
func (s *Links) CodeKey(_ context.Context) ([32]byte, error) {
	return [32]byte{}, link.ErrUnavailable
}

// DayKey returns the key of visitor tags for the UTC day that holds day.
func (s *Links) DayKey(_ context.Context, _ time.Time) ([16]byte, error) {
	return [16]byte{}, link.ErrUnavailable
}

// Run checkpoints until ctx ends.
func (s *Links) Run(_ context.Context) error { return nil }

// Healthy returns nil while writes are accepted.
func (s *Links) Healthy() error { return nil }

// Integrity checks the file.
func (s *Links) Integrity(_ context.Context) error { return link.ErrUnavailable }

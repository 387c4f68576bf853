package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"curt/internal/auth"
	"curt/internal/backend/postgres"
	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/codegen"
	"curt/internal/config"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/moderation"
)

// linkStore is what the server needs of a store of links.
type linkStore interface {
	link.Store
	link.Batcher
	link.Spender
	link.Deduper
	codegen.Leaser
	clicks.DayKeys

	// CodeKey returns the key of the permutation, which other secrets are derived from.
	CodeKey(ctx context.Context) ([32]byte, error)
	// Healthy returns nil while writes are accepted. It does no I/O.
	Healthy() error
	// Run looks after the store until ctx ends.
	Run(ctx context.Context) error
}

// journal is the journal of moderation with how much of it has taken effect.
type journal interface {
	moderation.Journal
	moderation.ProgressStore
}

// accounts is what is kept beside the links, and ends with them.
type accounts struct {
	once    idempotency.Store
	keys    auth.Store
	shares  auth.ShareStore
	journal journal
	cases   moderation.Cases
	appeals moderation.Appeals
}

// openBackend opens the store of links that is set, and what lies beside it.
func (s *Server) openBackend(ctx context.Context) error {
	if s.config.Links == config.SQLite {
		if err := s.noLostLinks(); err != nil {
			return err
		}
		l, err := sqlite.OpenLinks(ctx, sqlite.LinksConfig{
			Path:        filepath.Join(s.config.Data, "curt.db"),
			Synchronous: s.config.SQLiteSynchronous, Stored: s.finder.stored, Tracer: s.traces.Tracer(),
		})
		if err != nil {
			return err
		}
		s.links, s.accounts = l, accounts{l.Idempotency(), l.Keys(), l.Shares(), l.Journal(), l.Cases(), l.Appeals()}
		return nil
	}
	if err := s.noOwnLinks(); err != nil {
		return err
	}
	name, err := instance(s.config.Data)
	if err != nil {
		return err
	}
	l, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: s.config.Links, Holder: name, Stored: s.finder.stored, Log: s.log})
	if err != nil {
		return wrongLinks(s.config, err)
	}
	s.links, s.accounts = l, accounts{l.Idempotency(), l.Keys(), l.Shares(), l.Journal(), l.Cases(), l.Appeals()}
	return nil
}

// noLostLinks refuses a folder that has clicks and no links: whoever started on it would
// answer 404 for links that were lost or not restored, and could give their codes to others.
// The store of links is the first that a new folder gets.
func (s *Server) noLostLinks() error {
	info, err := os.Stat(filepath.Join(s.config.Data, "curt.db"))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for the links: %w", err)
	case err == nil && info.Size() > 0:
		return nil
	}
	counts, err := os.Stat(filepath.Join(s.config.Data, "clicks.db"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // nothing was counted: a new folder
	case err != nil:
		return fmt.Errorf("look for the counts: %w", err)
	case counts.Size() == 0:
		return nil
	}
	return &config.Error{
		Setting: "CURT_DATA", Value: s.config.Data,
		Want: "its links are gone: curt.db is missing or empty, and clicks.db beside it has counts; bring a backup back with curt restore --force, or take another folder",
	}
}

// noOwnLinks refuses a folder with links of its own, which nobody would serve any more.
func (s *Server) noOwnLinks() error {
	_, err := os.Stat(filepath.Join(s.config.Data, "curt.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &config.Error{
		Setting: "CURT_DATA", Value: s.config.Data,
		Want: "CURT_LINKS names a database, and this folder has links of its own in curt.db; take another folder (curt export and curt import move links)",
	}
}

// wrongLinks makes a wrong setting of a database that no retry helps with. What a driver
// says of a connection has no password in it.
func wrongLinks(cfg config.Config, err error) error {
	if !errors.Is(err, postgres.ErrUnfit) {
		return err
	}
	return &config.Error{Setting: "CURT_LINKS", Value: config.Redact(cfg.Links), Want: err.Error()}
}

// instanceFile is in the folders of servers whose links are in a database.
const instanceFile = "instance"

// Elsewhere returns an error for a data folder whose links are in a database: the commands
// that work on the folder have nothing to say about those.
func Elsewhere(folder string) error {
	_, err := os.Stat(filepath.Join(folder, instanceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the links of %s are in a database, as CURT_LINKS says; use PostgreSQL's own means, such as pg_dump", folder)
}

// instance names this folder's server to others, for good: it is made at the first start.
// A server that starts on the same folder comes after the one of before, as the folder's
// lock sees to.
func instance(folder string) (string, error) {
	name := filepath.Join(folder, instanceFile)
	text, err := os.ReadFile(name)
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the name of this instance: %w", err)
	}
	made := rand.Text()
	if err := os.WriteFile(name, []byte(made), 0o600); err != nil {
		return "", fmt.Errorf("name this instance: %w", err)
	}
	return made, nil
}

package handover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"curt/internal/background"
)

// Limit is how long a server stays frozen for a mover that does not come to an end. A mover whose
// last changes take longer fails, and the server goes on.
const Limit = 5 * time.Second

const (
	lookEvery = time.Second           // for an ask
	waitEvery = 10 * time.Millisecond // for the next word, while frozen
)

// Store is what a server freezes.
type Store interface {
	// Freeze refuses writes until Thaw. Those accepted before have their outcome when it returns.
	Freeze(ctx context.Context) error
	Thaw()
}

// Server answers movers for the server of a data folder.
type Server struct {
	Folder  string
	Store   Store
	Prepare func(ctx context.Context) error // before the first freeze; nil = nothing
	Log     *slog.Logger

	// Owned by Run.
	last  string // token of the ask that was answered last
	moved bool   // the links are elsewhere
}

// Run answers until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	for range background.Every(ctx, lookEvery) {
		if s.moved {
			continue
		}
		a, asked, err := s.asked()
		if err != nil {
			s.Log.WarnContext(ctx, "reading what curt move asks for failed, retrying", slog.Any("err", err))
		}
		if asked && a.Token != s.last && held(s.Folder) {
			s.last = a.Token
			s.serve(ctx, a)
		}
	}
	return nil
}

func (s *Server) asked() (a ask, there bool, err error) {
	name := filepath.Join(s.Folder, askFile)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return a, false, nil // nearly always, and cheaper than to open it
	}
	err = read(name, &a)
	if errors.Is(err, fs.ErrNotExist) {
		return a, false, nil
	}
	return a, err == nil, err
}

// serve freezes the store for an ask, and thaws it unless the links are elsewhere in the end.
func (s *Server) serve(ctx context.Context, a ask) {
	why := s.freeze(ctx, a)
	if why == nil {
		return
	}
	s.Store.Thaw()
	s.Log.WarnContext(ctx, "curt move did not finish, links are written here again", slog.Any("err", why))
	if err := s.answer(answer{Token: a.Token, State: thawed, Why: why.Error()}); err != nil {
		s.Log.WarnContext(ctx, "answering curt move failed", slog.Any("err", err))
	}
}

// Why a store is thawed.
var (
	errGone = errors.New("curt move has ended")
	errBack = errors.New("curt move took its word back")
	errLate = fmt.Errorf("curt move did not finish within %s", Limit)
)

// freeze returns nil once the links are elsewhere, and else why the store has to be thawed.
func (s *Server) freeze(ctx context.Context, a ask) error {
	if s.Prepare != nil {
		if err := s.Prepare(ctx); err != nil {
			return err
		}
	}
	s.Log.InfoContext(ctx, "links are frozen for curt move, creates and changes are answered 503")
	began := time.Now()
	if err := s.Store.Freeze(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := s.answer(answer{Token: a.Token, State: frozen}); err != nil {
		return err
	}
	for range background.Every(ctx, waitEvery) {
		now, there, err := s.asked()
		switch {
		case err != nil:
			return err
		case !there || now.Token != a.Token:
			return errBack
		case time.Since(began) > Limit:
			return errLate
		case !held(s.Folder):
			return errGone
		case now.Switch != nil:
			return s.move(ctx, a.Token, *now.Switch)
		}
	}
	return context.Cause(ctx)
}

// move says durably that the links are elsewhere. When that fails, they may be: then the store
// stays frozen.
func (s *Server) move(ctx context.Context, token string, m Mark) error {
	if err := WriteMark(s.Folder, m); err != nil {
		if there, readErr := Moved(s.Folder); readErr == nil && there == nil {
			return err
		}
		s.Log.ErrorContext(ctx, "links may have been moved, writes stay refused", slog.Any("err", err))
	}
	s.moved = true
	s.Log.InfoContext(ctx, "links were moved, only redirects continue here", slog.String("to", m.To))
	if err := s.answer(answer{Token: token, State: moved}); err != nil {
		s.Log.WarnContext(ctx, "answering curt move failed", slog.Any("err", err)) // it reads the mark
	}
	return nil
}

func (s *Server) answer(a answer) error {
	if err := write(filepath.Join(s.Folder, answerFile), a, false); err != nil {
		return fmt.Errorf("answer curt move: %w", err)
	}
	return nil
}

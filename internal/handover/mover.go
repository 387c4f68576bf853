package handover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy means that another curt move works on the folder.
var ErrBusy = errors.New("another curt move is using this folder")

// ErrThawed means that the server writes again: what it wrote since has to be moved first.
var ErrThawed = errors.New("the server writes links again")

// errSilent is of a server of an earlier release.
var errSilent = errors.New("the server of this folder does not respond; it must be of this release or a newer one")

// answerWithin is how long a server may take to notice an ask, and to finish the writes under way.
const answerWithin = 30 * time.Second

const pollEvery = 5 * time.Millisecond

// Mover is a curt move that has a data folder to itself among movers, until Close or its end.
type Mover struct {
	folder string
	lock   *os.File
	alone  func() (lock io.Closer, ok bool, err error)
}

// Begin makes the caller the mover of a folder. alone locks the folder against servers; ok is
// false where one uses it.
func Begin(folder string, alone func() (lock io.Closer, ok bool, err error)) (*Mover, error) {
	f, err := os.OpenFile(filepath.Join(folder, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the folder for a move: %w", err)
	}
	if err := lockAlone(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the folder for a move: %w", err), f.Close())
	}
	return &Mover{folder, f, alone}, nil
}

// lockAlone tries several times: a server that looks whether a mover lives has the lock for a moment.
func lockAlone(f *os.File) (err error) {
	for range 10 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		time.Sleep(pollEvery)
	}
	return ErrBusy
}

// Close lets another mover begin. What was frozen and not switched is thawed by its server.
func (m *Mover) Close() error {
	return errors.Join(m.withdraw(), m.lock.Close())
}

func (m *Mover) withdraw() error {
	var errs []error
	for _, name := range []string{askFile, answerFile} {
		if err := os.Remove(filepath.Join(m.folder, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Frozen is a folder in which nobody writes links. Release or Switch ends it; its server may end
// it before.
type Frozen struct {
	mover *Mover
	token string    // of the server's freeze
	lock  io.Closer // instead, where there is no server
}

// Freeze returns once nobody writes links in the folder.
func (m *Mover) Freeze(ctx context.Context) (*Frozen, error) {
	f := &Frozen{mover: m, token: rand.Text()}
	if err := m.withdraw(); err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	if err := write(filepath.Join(m.folder, askFile), ask{Token: f.token}, false); err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	state, err := f.await(ctx, frozen)
	if err == nil && state == thawed {
		err = ErrThawed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("freeze: %w", err), f.Release())
	}
	return f, nil
}

// await returns what the server says about the token: wanted, or that it is thawed. Where there is
// no server it locks the folder, and that is as good as frozen.
func (f *Frozen) await(ctx context.Context, wanted state) (state, error) {
	within, cancel := context.WithTimeoutCause(ctx, answerWithin, errSilent)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		var a answer
		err := read(filepath.Join(f.mover.folder, answerFile), &a)
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return "", err
		case err == nil && a.Token == f.token && (a.State == wanted || a.State == thawed):
			return a.State, nil
		}
		lock, ok, err := f.mover.alone()
		if err != nil {
			return "", err
		}
		if ok {
			f.lock = lock
			return frozen, nil
		}
		select {
		case <-within.Done():
			return "", context.Cause(within)
		case <-poll.C:
		}
	}
}

// Switch says durably that the links are elsewhere. ErrThawed: they are not, because the server
// wrote, or may have, since the freeze; nothing has changed. Any other error means that it may have
// happened: Moved tells.
func (f *Frozen) Switch(ctx context.Context, to Mark) error {
	if f.lock != nil {
		return WriteMark(f.mover.folder, to)
	}
	if err := write(filepath.Join(f.mover.folder, askFile), ask{Token: f.token, Switch: &to}, false); err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	state, err := f.await(ctx, moved)
	switch {
	case err != nil:
		return fmt.Errorf("switch: %w", err)
	case state == moved:
		return nil
	}
	if state == frozen { // the server ended: perhaps before it switched, perhaps behind
		there, err := Moved(f.mover.folder)
		if err != nil || there != nil {
			return err
		}
	}
	return fmt.Errorf("switch: %w", ErrThawed)
}

// TakeLock returns the lock of a folder that has no server, for its caller to close; nil = it has one.
func (f *Frozen) TakeLock() (lock io.Closer) {
	lock, f.lock = f.lock, nil
	return lock
}

// Release has the server write again, unless the links are elsewhere.
func (f *Frozen) Release() error {
	err := f.mover.withdraw()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
		f.lock = nil
	}
	return err
}

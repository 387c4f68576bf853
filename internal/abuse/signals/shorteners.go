package signals

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/listfile"
	"curt/internal/weburl"
)

//go:embed shorteners.txt
var knownShorteners string

// Shorteners is the signal Shortener: a link to another service of redirects hides where
// it ends from every other signal, and from the visitor of a preview.
// The services are exchanged in one step when an operator's file changes (OpenFiles).
type Shorteners struct {
	path string
	now  atomic.Pointer[hosts]
}

// hosts are names, never changed once they are read.
type hosts map[string]struct{}

// NewShorteners knows the services that are listed with this package and those of the
// file at path, a host on each line with comments behind "#"; "" = no file. A line that
// begins with "-" takes a host out again. The error is an ErrDataFile.
func NewShorteners(path string) (*Shorteners, error) {
	known, _, _, err := readShorteners(path)
	if err != nil {
		return nil, fmt.Errorf("read the shorteners: %w", err)
	}
	s := &Shorteners{path: path}
	s.now.Store(&known)
	return s, nil
}

// readShorteners reads the services of this package and those of the file at path, if one
// is named, and returns how many lines that has.
func readShorteners(path string) (known hosts, n int, of listfile.Stamp, err error) {
	known = hosts{}
	if err := listfile.EachLine(strings.NewReader(knownShorteners), known.read); err != nil {
		return nil, 0, of, fmt.Errorf("read the known shorteners: %w", err)
	}
	n, of, err = listfile.LinesOf(path, known.read)
	return known, n, of, err
}

// Source implements Sourced.
func (s *Shorteners) Source() *listfile.File {
	return &listfile.File{What: "list of shorteners", Path: s.path, Load: func(int) (listfile.Content, func(), listfile.Stamp, error) {
		known, n, of, err := readShorteners(s.path)
		return listfile.Content{Entries: n}, func() { s.now.Store(&known) }, of, err
	}}
}

func (h hosts) read(line string) error {
	name, out := strings.CutPrefix(line, "-")
	host, err := weburl.ParseHost(name)
	switch {
	case err != nil || strings.IndexByte(host, '.') < 0:
		return fmt.Errorf("invalid host %q", name)
	case out:
		delete(h, host)
	default:
		h[host] = struct{}{}
	}
	return nil
}

// Name implements abuse.Signal.
func (*Shorteners) Name() abuse.Name { return abuse.Shortener }

// Inspect implements abuse.Signal.
func (s *Shorteners) Inspect(_ context.Context, _ time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	known, name := *s.now.Load(), strings.TrimSuffix(f.URL.Host(), ".")
	for {
		if _, listed := known[name]; listed {
			return abuse.Found(abuse.Shortener, name+" redirects to destinations chosen by its users"), nil
		}
		_, above, found := strings.Cut(name, ".")
		if !found {
			return nil, nil
		}
		name = above
	}
}

package abuse

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"curt/internal/weburl"
)

//go:embed shorteners.txt
var knownShorteners string

// Shorteners is the signal Shortener: a link to another service of redirects hides where
// it ends from every other signal, and from the visitor of a preview.
type Shorteners struct {
	hosts map[string]struct{} // set once
}

// NewShorteners knows the services that are listed with this package and those of the
// file at path, a host on each line with comments behind "#"; "" = no file. A line that
// begins with "-" takes a host out again. The error is an ErrDataFile.
func NewShorteners(path string) (*Shorteners, error) {
	s := &Shorteners{hosts: map[string]struct{}{}}
	if err := eachLine(strings.NewReader(knownShorteners), s.read); err != nil {
		return nil, fmt.Errorf("read the known shorteners: %w", err)
	}
	if path == "" {
		return s, nil
	}
	if err := eachLineOf(path, s.read); err != nil {
		return nil, fmt.Errorf("read the shorteners of %s: %w", path, err)
	}
	return s, nil
}

func (s *Shorteners) read(line string) error {
	name, out := strings.CutPrefix(line, "-")
	host, err := weburl.ParseHost(name)
	switch {
	case err != nil || strings.IndexByte(host, '.') < 0:
		return fmt.Errorf("%q is no host", name)
	case out:
		delete(s.hosts, host)
	default:
		s.hosts[host] = struct{}{}
	}
	return nil
}

// Name implements Signal.
func (*Shorteners) Name() Name { return Shortener }

// Look implements Signal.
func (s *Shorteners) Look(_ context.Context, _ time.Time, f *Facts) ([]Finding, error) {
	name := strings.TrimSuffix(f.URL.Host(), ".")
	for {
		if _, listed := s.hosts[name]; listed {
			return one(Shortener, name+" redirects to wherever its users say"), nil
		}
		_, above, found := strings.Cut(name, ".")
		if !found {
			return nil, nil
		}
		name = above
	}
}

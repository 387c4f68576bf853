package mmdb

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"curt/internal/clicks"
)

// edition is one version of the file.
type edition struct {
	reader *maxminddb.Reader
	kind   string
	built  time.Time
	stats  *stats

	mu         sync.Mutex
	young, old map[uintptr]clicks.Location // guarded by mu; by where the file has the record
}

// remembered is how many places of a file are kept decoded, in two generations: a
// city's clicks come from few records.
const remembered = 1 << 14

// read reads a whole file. Whatever its bytes are, the worst is an error.
func read(path string, s *stats) (e *edition, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	r, err := maxminddb.OpenBytes(text)
	if err != nil {
		return nil, err
	}
	return &edition{reader: r, kind: cleanText(r.Metadata.DatabaseType), built: r.Metadata.BuildTime().UTC(), stats: s}, nil
}

// locate returns the place of an address; the zero Place for one that is not
// there, or whose record is damaged.
func (e *edition) locate(addr netip.Addr) (p clicks.Location) {
	defer func() {
		if recover() != nil { // the library finds damage by error; this is for what it does not find
			e.stats.damages.Add(1)
			p = clicks.Location{}
		}
	}()
	found := e.reader.Lookup(addr)
	if !found.Found() {
		return clicks.Location{}
	}
	at := found.Offset()
	if p, ok := e.known(at); ok {
		return p
	}
	p, whole := decode(found)
	if !whole {
		e.stats.damages.Add(1)
	}
	e.remember(at, p)
	return p
}

func (e *edition) known(at uintptr) (clicks.Location, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.young[at]; ok {
		return p, true
	}
	p, ok := e.old[at]
	if ok {
		e.put(at, p)
	}
	return p, ok
}

func (e *edition) remember(at uintptr, p clicks.Location) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.put(at, p)
}

// put keeps a place; the caller holds mu.
func (e *edition) put(at uintptr, p clicks.Location) {
	if e.young == nil || len(e.young) >= remembered/2 {
		e.old, e.young = e.young, make(map[uintptr]clicks.Location)
	}
	e.young[at] = p
}

// decode reads what is kept of a record. Only texts at known paths are decoded: a
// damaged record may claim a map of millions. whole is false when it is damaged.
func decode(r maxminddb.Result) (p clicks.Location, whole bool) {
	whole = true
	text := func(paths [][]any) string {
		for _, path := range paths {
			var s string
			err := r.DecodePath(&s, path...)
			if damage := (maxminddb.InvalidDatabaseError{}); errors.As(err, &damage) {
				whole = false
			}
			if s = cleanText(s); err == nil && s != "" {
				return s
			}
		}
		return ""
	}
	p.Country = clicks.ParseCountry(text(countryPaths()))
	p.City = text(cityPaths())
	p.Network = text(networkPaths())
	return p, whole
}

// Where databases have what is kept: MaxMind and DB-IP, then IPinfo, whose lite
// database spells the country's name where the others have its code.

func countryPaths() [][]any {
	return [][]any{{"country", "iso_code"}, {"country_code"}, {"country"}}
}

func cityPaths() [][]any { return [][]any{{"city", "names", "en"}, {"city"}} }

func networkPaths() [][]any {
	return [][]any{{"autonomous_system_organization"}, {"traits", "autonomous_system_organization"}, {"as_name"}}
}

package lists

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/blocklist"
	"curt/internal/abuse/lookalike"
	"curt/internal/abuse/skeleton"
	"curt/internal/link"
	"curt/internal/moderation"
)

// listName is the name of the lists in evidence.
const listName = "moderators"

// snapshot is what all lists come to. It never changes once it is created.
type snapshot struct {
	words   *blocklist.Words
	names   *lookalike.Names
	service map[string]struct{} // skeletons of service names
	off     map[string]struct{} // built-in names that are disabled
	excepts map[string]struct{} // bare aliases that look like no name
	allowed *blocklist.Lists
}

// rebuild returns the snapshot of lines; of kinds that did not change it has the parts of before.
func rebuild(before *snapshot, lines map[moderation.Kind]map[string]uint64, changed map[moderation.Kind]bool) (*snapshot, error) {
	next := *before
	var err error
	if changed[moderation.KindRefusedWord] {
		of := lines[moderation.KindRefusedWord]
		words := slices.DeleteFunc(builtinWords(), func(word string) bool { return of[without+word] != 0 })
		if next.words, err = blocklist.WordsOf(listName, append(words, unmarked(of, without)...)); err != nil {
			return nil, fmt.Errorf("build the list of refused words: %w", err)
		}
	}
	if changed[moderation.KindAllowedDestination] {
		if next.allowed, err = blocklist.AllowOf(listName, unmarked(lines[moderation.KindAllowedDestination])); err != nil {
			return nil, fmt.Errorf("build the list of allowed destinations: %w", err)
		}
	}
	if changed[moderation.KindLookAlike] {
		of := lines[moderation.KindLookAlike]
		next.names = lookalike.NewNames(unmarked(of, without, except))
		next.off, next.excepts = marked(of, without), marked(of, except)
		next.service = Service(next.off)
	}
	return &next, nil
}

// unmarked are the lines of a list without those that begin with a mark.
func unmarked(of map[string]uint64, marks ...string) []string {
	all := make([]string, 0, len(of))
	for _, line := range slices.Sorted(maps.Keys(of)) {
		if !slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(line, mark) }) {
			all = append(all, line)
		}
	}
	return all
}

// marked are the lines behind a mark.
func marked(of map[string]uint64, mark string) map[string]struct{} {
	all := map[string]struct{}{}
	for line := range of {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			all[rest] = struct{}{}
		}
	}
	return all
}

// RefusesCode reports whether a word of the lists refuses an alias or a generated code. It
// allocates nothing.
func (k *Keeper) RefusesCode(code string) bool {
	_, refused := k.now.Load().words.Find(code)
	return refused
}

// RefusesAlias is RefusesCode, and whether a chosen alias looks like a protected name. Generated
// codes are not compared with names: they are chance, and nobody reads a name into them on purpose.
func (k *Keeper) RefusesAlias(alias string) bool {
	s := k.now.Load()
	if _, refused := s.words.Find(alias); refused {
		return true
	}
	if len(alias) > link.MaxCode {
		return false
	}
	var room [link.MaxCode]byte
	bare := appendBare(room[:0], alias)
	if _, excepted := s.excepts[string(bare)]; excepted {
		return false
	}
	if _, found := s.names.Imitated(bare); found {
		return true
	}
	if k.cfg.Brands == nil {
		return false
	}
	name, found := k.cfg.Brands.Imitated(bare)
	if found {
		_, off := s.off[name]
		found = !off
	}
	return found
}

// ReadsLikeService reports whether an alias looks like a service name that is not disabled.
func (k *Keeper) ReadsLikeService(alias string) bool {
	_, imitates := k.now.Load().service[skeleton.Of(alias)]
	return imitates
}

// Name implements abuse.Signal: findings are abuse.Allowed.
func (k *Keeper) Name() abuse.Name { return abuse.Allowed }

// Inspect implements abuse.Signal for allowed destinations.
func (k *Keeper) Inspect(ctx context.Context, now time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	return k.now.Load().allowed.Inspect(ctx, now, f)
}

// Package moveout reads the curt.db and clicks.db of a data folder for a move to a database, beside
// the server that writes them: all links by pages, then what changed since by the two logs, and the
// tables of accounts. Read source.go first. It writes nothing.
package moveout

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/accounts"
	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/codegen"
	"curt/internal/link"
)

// Source is a curt.db as it was when it was opened or renewed last. It belongs to one goroutine.
type Source struct {
	*sqlite.Snapshot
	key   [32]byte
	codes *codegen.Permutation
}

// ErrApart means that the accounts of the links are in a database already.
var ErrApart = errors.New("the accounts of these links are in the database of CURT_ACCOUNTS, which curt move does not take apart")

// Open opens a curt.db of this release's schema.
func Open(ctx context.Context, path string) (*Source, error) {
	s, err := sqlite.TakeSnapshot(ctx, path)
	if err != nil {
		return nil, err
	}
	o := &Source{Snapshot: s}
	if err := o.check(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	o.codes = codegen.NewPermutation(o.key)
	return o, nil
}

func (s *Source) check() error {
	has, err := s.Schema()
	if err != nil {
		return err
	}
	knows, err := sqlite.Schema()
	if err != nil {
		return err
	}
	if has != knows {
		return fmt.Errorf("%s has schema %d, and this curt knows %d: start the folder's server with this release once", s.Path(), has, knows)
	}
	apart, err := s.AccountsApart()
	if err == nil && apart {
		err = ErrApart
	}
	if err != nil {
		return err
	}
	return s.View("read the key of codes of", s.readCodeKey)
}

const sqlCodeKey = `SELECT value FROM settings WHERE name = 'code_key'`

// readCodeKey reads the key, which bears a checksum (package leases).
func (s *Source) readCodeKey(t *sqlitedb.Tx) error {
	var stored []byte
	found, err := t.One(sqlCodeKey, func(row []driver.Value) error {
		b, _ := row[0].([]byte)
		stored = append(stored, b...)
		return nil
	})
	if err != nil {
		return err
	}
	n := copy(s.key[:], stored)
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(s.key[:], crc32.MakeTable(crc32.Castagnoli)))
	if !found || n != len(s.key) || string(stored[n:]) != string(sum) {
		return fmt.Errorf("the key of codes: %w: %w", link.ErrUnavailable, sqlitedb.ErrCorrupt)
	}
	return nil
}

// CodeKey is the key that codes are made with.
func (s *Source) CodeKey() [32]byte { return s.key }

// Cold implements coldcopy.Source.
func (s *Source) Cold(f func(coldsql.Tx) error) error {
	return s.View("read the accounts of", func(t *sqlitedb.Tx) error { return f(accounts.Tx(t)) })
}

const sqlCountLinks = `SELECT count(*) FROM links`

// CountLinks returns how many links there are, tombstones included.
func (s *Source) CountLinks() (n int64, err error) {
	err = s.View("count the links of", func(t *sqlitedb.Tx) error {
		n, _, err = t.Number(sqlCountLinks)
		return err
	})
	return n, err
}

// Get returns links as they are now; one that is not there, or damaged, is missing. damaged has the
// errors of those.
func (s *Source) Get(keys []link.Key) (links []link.Link, damaged []error, err error) {
	err = s.View("read", func(t *sqlitedb.Tx) error {
		for _, k := range keys {
			l, found, err := s.byKey(t, k)
			switch {
			case linkrow.IsDamaged(err):
				damaged = append(damaged, err)
			case err != nil:
				return err
			case found:
				links = append(links, l)
			}
		}
		return nil
	})
	return links, damaged, err
}

const sqlAlias = `SELECT n FROM aliases WHERE domain = ? AND code = ?`

// byKey finds a link where its code lies, or where aliases says.
func (s *Source) byKey(t *sqlitedb.Tx, k link.Key) (l link.Link, found bool, err error) {
	at := func(n int64) error {
		_, err := t.One(linkrow.SelectRow, func(row []driver.Value) error {
			_, got, err := linkrow.Scan(row)
			if err == nil && got.Key == k {
				l, found = got, true
			}
			return err
		}, n)
		return err
	}
	if n, ok := s.codes.Position(k.Code); ok {
		if err := at(n); err != nil || found {
			return l, found, err
		}
	}
	n, ok, err := t.Number(sqlAlias, string(k.Domain), string(k.Code))
	if err == nil && ok {
		err = at(n)
	}
	return l, found, err
}

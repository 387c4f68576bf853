package pgserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/bench/internal/traffic"
	"curt/internal/auth"
	"curt/internal/backend/postgres"
	"curt/internal/codegen"
	"curt/internal/link"
)

// codeLength is the server's default.
const codeLength = 7

// Fill makes n links, as creates would have left them, and returns their codes.
func Fill(ctx context.Context, url string, n int) (codes []string, err error) {
	store, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: url})
	if err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	key, err := store.CodeKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	perm, urls := codegen.NewPermutation(key), traffic.NewURLs()
	const batch = 1000
	for len(codes) < n {
		first, err := store.Lease(ctx, codegen.Counter(codegen.DefaultPrefix, codeLength), batch)
		if err != nil {
			return nil, fmt.Errorf("fill: %w", err)
		}
		made := make([]link.Creation, batch)
		for i := range made {
			id := first + uint64(i)
			now := time.Now().UTC().Truncate(time.Millisecond)
			uuid, err := link.NewID(now, rand.Reader)
			if err != nil {
				return nil, fmt.Errorf("fill: %w", err)
			}
			made[i].Link = link.Link{
				ID: uuid, Key: link.Key{Code: perm.Code(codeLength, id)}, CodeKind: link.Counted,
				Destination: string(urls.Append(nil, id)), Workspace: link.WorkspaceDefault, CreatedBy: auth.AdminKeyID,
				Status: link.Active, Safety: link.Clean, Redirect: 302, NoIndex: true, Created: now, Updated: now,
			}
			codes = append(codes, string(made[i].Link.Key.Code))
		}
		results, err := store.CreateMany(ctx, time.Now(), made)
		if err != nil {
			return nil, fmt.Errorf("fill: %w", err)
		}
		for _, r := range results {
			if r.Err != nil {
				return nil, fmt.Errorf("fill: %w", r.Err)
			}
		}
	}
	return codes, nil
}

// insert is what a program sends that makes one link for each request.
const insert = `INSERT INTO links (place, domain, code, id, workspace, minted, destination, digest, status, safety, redirect,
	starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version)
VALUES ($1, '', $2, $3, 'default', true, $4, $5, 1, 1, 302, 0, 0, $6, $6, 0, 0, '', false, true, false, $7, '', '{}', 1)
ON CONFLICT DO NOTHING`

// Inserter inserts links one by one, from many connections.
type Inserter struct {
	conns []*pgx.Conn
	perm  *codegen.Permutation
	next  atomic.Uint64
}

// NewInserter makes the tables of a database and connects to it.
func NewInserter(ctx context.Context, url string, conns int) (*Inserter, error) {
	store, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: url})
	if err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	key, err := store.CodeKey(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	i := &Inserter{perm: codegen.NewPermutation(key)}
	for range conns {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("insert: %w", err), i.Close(ctx))
		}
		i.conns = append(i.conns, c)
	}
	return i, nil
}

// Run inserts for a while, each connection the next row once it has its answer, and returns
// how many rows there were.
func (i *Inserter) Run(ctx context.Context, d time.Duration) (uint64, error) {
	var rows atomic.Uint64
	end, errs := time.Now().Add(d), make([]error, len(i.conns))
	var wg sync.WaitGroup
	for w, c := range i.conns {
		wg.Go(func() {
			urls := traffic.NewURLs()
			for time.Now().Before(end) && errs[w] == nil {
				errs[w] = i.one(ctx, c, urls)
				rows.Add(1)
			}
		})
	}
	wg.Wait()
	return rows.Load(), errors.Join(errs...)
}

func (i *Inserter) one(ctx context.Context, c *pgx.Conn, urls *traffic.URLs) error {
	n := i.next.Add(1)
	now := time.Now()
	id, err := link.NewID(now, rand.Reader)
	if err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	destination := string(urls.Append(nil, n))
	sum := sha256.Sum256([]byte(destination))
	place := int64(uint64(codeLength-codegen.MinLength)<<60 | n)
	_, err = c.Exec(ctx, insert, place, string(i.perm.Code(codeLength, n)), [16]byte(id), destination,
		int64(binary.BigEndian.Uint64(sum[:])), now.UnixMilli(), auth.AdminKeyID)
	if err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	return nil
}

// Close ends the connections.
func (i *Inserter) Close(ctx context.Context) error {
	var errs []error
	for _, c := range i.conns {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

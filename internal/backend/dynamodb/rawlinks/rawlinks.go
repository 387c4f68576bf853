// Package rawlinks reads and writes the links of a table as they are, tombstones included, with their
// versions and counters, and what servers over the table were given: for a move between stores, and for
// exports. Read Table first; target.go is a table that links are moved to, source.go is one that links are moved from.
package rawlinks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/link"
)

// callTime bounds a request: nobody waits for it but a command.
const callTime = 20 * time.Second

// Table is a table of links. It belongs to one goroutine.
type Table struct {
	db *ddb.Client
	at ddb.Address
}

// Open connects to tables that curt migrate has made.
func Open(ctx context.Context, url string) (*Table, error) {
	at, err := ddb.ParseAddress(url)
	if err != nil {
		return nil, err
	}
	db, err := tables.Open(ctx, at, ddb.Config{CallTime: callTime})
	if err != nil {
		return nil, err
	}
	return &Table{db: db, at: at}, nil
}

// Close refuses calls from now on.
func (t *Table) Close() error {
	t.db.Close()
	return nil
}

// Page returns up to n links behind a cursor, tombstones included, in the order of DynamoDB, and the
// cursor behind them; the empty one at the end. A walk sees every link that existed throughout. damaged
// has the errors of items that are no links.
func (t *Table) Page(ctx context.Context, after link.Cursor, n int) (page []link.Link, damaged []error, next link.Cursor, err error) {
	in := &dynamodb.ScanInput{TableName: &t.db.Links, ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(n))}
	if after != "" {
		in.ExclusiveStartKey = ddb.Item{linkitem.Key: ddb.Text(string(after))}
	}
	err = t.db.ReadMany(ctx, func(ctx context.Context) error {
		page, damaged = nil, nil
		items, last, err := t.db.Scan(ctx, in)
		if err != nil {
			return err
		}
		for _, item := range items {
			l, err := linkitem.Unmarshal(item)
			switch {
			case errors.Is(err, link.ErrNotFound): // a reservation, which stays behind
			case err != nil && link.Absent(err):
				damaged = append(damaged, err)
			case err != nil:
				return err
			default:
				page = append(page, l)
			}
		}
		next = link.Cursor(ddb.TextOf(last, linkitem.Key))
		return nil
	})
	if err != nil {
		return nil, nil, "", fmt.Errorf("read links of table %s: %w", t.at.Table, err)
	}
	return page, damaged, next, nil
}

// walkPage is how many links are read together: about a megabyte, which is what DynamoDB answers with.
const walkPage = 3000

// Each calls f with all links, by pages. A damaged one is an error.
func (t *Table) Each(ctx context.Context, f func([]link.Link) error) error {
	for after := link.Cursor(""); ; {
		page, damaged, next, err := t.Page(ctx, after, walkPage)
		if err == nil && len(damaged) > 0 {
			err = damaged[0]
		}
		if err == nil {
			err = f(page)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

// Digest reads all links.
func (t *Table) Digest(ctx context.Context, told func(rows int64)) (coldcopy.Digest, error) {
	return coldcopy.OfLinks(func(page func([]link.Link) error) error { return t.Each(ctx, page) }, told)
}

// Get reads links consistently; what is not there is left out, and a damaged one is an error.
func (t *Table) Get(ctx context.Context, keys []link.Key) (links []link.Link, err error) {
	asked := make(map[link.Key]bool, len(keys))
	var items []ddb.Item
	for _, k := range keys {
		if !asked[k] {
			asked[k] = true
			items = append(items, linkitem.KeyOf(k))
		}
	}
	err = t.db.ReadMany(ctx, func(ctx context.Context) error {
		links = nil
		return t.db.BatchGet(ctx, t.db.Links, items, func(item ddb.Item) error {
			l, err := linkitem.Unmarshal(item)
			if errors.Is(err, link.ErrNotFound) { // a reservation
				return nil
			}
			links = append(links, l)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read %d links: %w", len(keys), err)
	}
	return links, nil
}

// writers store at once.
const writers = 16

// Put stores links as they are, in the place of what is stored under their keys, and the items of their
// chosen codes. A link may come several times; the last one counts. The change log is not told.
func (t *Table) Put(ctx context.Context, links []link.Link) error {
	links = newest(links)
	all := make([]ddb.Item, 0, len(links))
	var chosen []ddb.Item
	for i := range links {
		item, err := linkitem.Marshal(&links[i])
		if err != nil {
			return err
		}
		all = append(all, item)
		if links[i].CodeKind == link.Chosen {
			chosen = append(chosen, linkitem.Chosen(links[i].Key))
		}
	}
	// A code is registered before its link is there: whoever fills a filter from the register may have
	// one too many, never one too few.
	if err := t.putAll(ctx, t.db.State, chosen); err != nil {
		return fmt.Errorf("register chosen codes: %w", err)
	}
	if err := t.putAll(ctx, t.db.Links, all); err != nil {
		return fmt.Errorf("store links: %w", err)
	}
	return nil
}

func (t *Table) putAll(ctx context.Context, table string, items []ddb.Item) error {
	var wg sync.WaitGroup
	turns := make(chan struct{}, writers)
	errs := make([]error, (len(items)+ddb.MaxPut-1)/ddb.MaxPut)
	for n := range errs {
		chunk := items[n*ddb.MaxPut : min(len(items), (n+1)*ddb.MaxPut)]
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			errs[n] = t.db.WriteMany(ctx, func(ctx context.Context) error { return t.db.BatchPut(ctx, table, chunk) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// newest returns the last one of each key.
func newest(links []link.Link) []link.Link {
	at := make(map[link.Key]int, len(links))
	all := make([]link.Link, 0, len(links))
	for i := range links {
		if n, there := at[links[i].Key]; there {
			all[n] = links[i]
			continue
		}
		at[links[i].Key] = len(all)
		all = append(all, links[i])
	}
	return all
}

// Identity returns what tells these tables from any others, whatever URL names them.
func (t *Table) Identity(ctx context.Context) (string, error) { return tables.Inspect(ctx, t.db, t.at) }

// Issued returns what servers were given. ddb.ErrUnfit: there were none.
func (t *Table) Issued(ctx context.Context) (coldcopy.Issued, error) {
	begun := false
	err := t.db.Read(ctx, func(ctx context.Context) (err error) {
		begun, err = state.HasCodeKey(ctx, t.db)
		return err
	})
	if err == nil && !begun {
		err = fmt.Errorf("%w: table %s has no links", ddb.ErrUnfit, t.at.Table)
	}
	if err != nil {
		return coldcopy.Issued{}, err
	}
	leases := state.NewLeases(t.db)
	if err := leases.Begin(ctx); err != nil {
		return coldcopy.Issued{}, err
	}
	return leases.Issued(ctx)
}

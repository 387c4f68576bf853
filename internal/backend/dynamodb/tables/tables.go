// Package tables says which tables curt needs in DynamoDB, creates them, and compares them with those
// that are there. The same description makes the template of CloudFormation and the policies of roles
// in deploy/dynamodb, so that none of them is another's copy. Read All first.
package tables

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
)

// Table is what a table has to be.
type Table struct {
	Name       string
	Hash, Sort Column // Sort is none for links
	Indexes    []Index
	TTL        string // the attribute that items expire by; "" = no item ever does
}

// Column is an attribute of a key.
type Column struct {
	Name string
	Type types.ScalarAttributeType
}

// Index is a global secondary index, of all attributes or of keys alone.
type Index struct {
	Name       string
	Hash, Sort Column
	Keys       bool
}

// The indexes of links.
const (
	ByWorkspace = "by_workspace"
	ByAge       = "by_age"
	BySame      = "by_same"
	ByExpiry    = "by_expiry"
	ByLate      = "by_late"
)

// All returns the tables at an address. The table of links has no time to live: its items hold codes,
// which are never given away again.
func All(at ddb.Address) []Table {
	text := func(name string) Column { return Column{name, types.ScalarAttributeTypeS} }
	bin := func(name string) Column { return Column{name, types.ScalarAttributeTypeB} }
	return []Table{
		{
			Name: at.Table, Hash: text(linkitem.Key),
			Indexes: []Index{
				{Name: ByWorkspace, Hash: text(linkitem.OfWorkspace), Sort: bin(linkitem.Age)},
				{Name: ByAge, Hash: text(linkitem.OfAll), Sort: bin(linkitem.Age)},
				{Name: BySame, Hash: text(linkitem.OfSame), Sort: bin(linkitem.Age)},
				{Name: ByExpiry, Hash: text(linkitem.OfExpiry), Sort: bin(linkitem.Expiry), Keys: true},
				{Name: ByLate, Hash: text(linkitem.OfLate), Sort: bin(linkitem.Late)},
			},
		},
		{Name: at.State(), Hash: text(ddb.Partition), Sort: bin(ddb.Sort), TTL: ddb.TTL},
	}
}

// keys are the key attributes of a table or an index.
func keys(hash, sort Column) []Column {
	if sort.Name == "" {
		return []Column{hash}
	}
	return []Column{hash, sort}
}

// columns are all key attributes, each once.
func (t *Table) columns() (all []Column) {
	seen := map[string]bool{}
	add := func(columns []Column) {
		for _, c := range columns {
			if !seen[c.Name] {
				seen[c.Name] = true
				all = append(all, c)
			}
		}
	}
	add(keys(t.Hash, t.Sort))
	for i := range t.Indexes {
		add(keys(t.Indexes[i].Hash, t.Indexes[i].Sort))
	}
	return all
}

// projection of an index.
func (x *Index) projection() types.ProjectionType {
	if x.Keys {
		return types.ProjectionTypeKeysOnly
	}
	return types.ProjectionTypeAll
}

// Probe looks at the tables at an address, and says in one line what was found.
func Probe(ctx context.Context, url string) (string, error) {
	at, err := ddb.ParseAddress(url)
	if err != nil {
		return "", err
	}
	db, err := Open(ctx, at, ddb.Config{})
	if err != nil {
		return "", err
	}
	db.Close()
	return "DynamoDB is available, and has the tables " + at.Table + " and " + at.State(), nil
}

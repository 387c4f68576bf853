package cache

import (
	"context"

	"curt/internal/link"
)

// Inverter finds the id that a code was minted from; codegen.Permutation is one.
type Inverter interface {
	ID(code link.Code) (id uint64, ok bool)
}

// Unminted walks the keys whose codes the permutation did not make.
type Unminted interface {
	Unminted(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error)
}

// Mark returns the lowest id that was never leased for codes of a length.
type Mark func(ctx context.Context, length int) (uint64, error)

// Issued tells which codes were never issued.
type Issued struct {
	ids   Inverter
	mark  Mark
	store Unminted
}

// NewIssued returns an Issued that knows nothing until Tiered.Run filled it.
func NewIssued(ids Inverter, mark Mark, store Unminted) *Issued {
	return &Issued{ids: ids, mark: mark, store: store}
}

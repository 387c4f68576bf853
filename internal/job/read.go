package job

import (
	"context"
	"io"

	"curt/internal/link"
)

// Reader reads a part of a job from an offset on. It holds a chunk in memory.
type Reader struct {
	ctx    context.Context //nolint:containedctx // a Reader is of one call
	store  Store
	id     link.ID
	part   Part
	offset int64
	size   int64
	held   []byte
}

var _ io.ReadSeeker = (*Reader)(nil)

// NewReader returns a reader of a part of a size, which only Seek from its end looks at.
func NewReader(ctx context.Context, s Store, id link.ID, p Part, offset, size int64) *Reader {
	return &Reader{ctx: ctx, store: s, id: id, part: p, offset: offset, size: size}
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset - int64(len(r.held))
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, link.ErrInvalid
	}
	r.offset, r.held = offset, nil
	return offset, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (n int, err error) {
	if len(r.held) == 0 {
		if r.held, err = r.store.Read(r.ctx, r.id, r.part, r.offset); err != nil {
			return 0, err
		}
		if len(r.held) == 0 {
			return 0, io.EOF
		}
		r.offset += int64(len(r.held))
	}
	n = copy(p, r.held)
	r.held = r.held[n:]
	return n, nil
}

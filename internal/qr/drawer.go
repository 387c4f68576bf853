package qr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ErrBusy means that others were being drawn for for as long as a caller may wait.
var ErrBusy = errors.New("too many QR codes are being generated")

// longestWait is how long a caller waits for its turn: about as long as people wait
// for a picture.
const longestWait = 2 * time.Second

// Drawer draws one code at a time. A drawing takes 3 to 50 ms of a processor, a
// thousand times what a redirect takes, and anybody may ask for one: the rest of the
// machine stays with the redirects. It is safe for many goroutines; its zero value is
// not, make it with NewDrawer.
type Drawer struct {
	turn chan struct{} // holds one value while somebody draws
}

// NewDrawer returns a Drawer.
func NewDrawer() *Drawer { return &Drawer{turn: make(chan struct{}, 1)} }

// Draw returns the text's code as an image of the options' format, which is not Any.
// Errors: *Error for a size that the code does not fit into, ErrTooLong, ErrBusy, and
// that of the context.
func (d *Drawer) Draw(ctx context.Context, text string, o Options) ([]byte, error) {
	late := time.NewTimer(longestWait)
	defer late.Stop()
	select {
	case d.turn <- struct{}{}:
	case <-late.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to draw: %w", ctx.Err())
	}
	defer func() { <-d.turn }()
	m, err := encode(text, o.Level)
	if err != nil {
		return nil, err
	}
	least := m.n + 2*o.Margin
	if o.Format == PNG {
		least *= leastModule
	}
	if o.Size < least {
		return nil, &Error{"size", fmt.Sprintf("is too small: this code needs %d pixels with its margin", least)}
	}
	if o.Format == PNG {
		return m.png(o)
	}
	return m.svg(o), nil
}

// drawing is the version of how things are drawn. A test holds it to the bytes: who
// changes them raises it, or caches keep what was.
const drawing = 1

// Tag returns the entity tag, in quotes, of what Draw returns for the text and these
// options, without drawing it.
func (o Options) Tag(text string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %+v %s", drawing, o, text))
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// MediaType returns the Content-Type of what Draw returns.
func (f Format) MediaType() string {
	if f == PNG {
		return "image/png"
	}
	return "image/svg+xml"
}

// ContentSecurityPolicy is for answers that are images: an SVG that is opened by itself
// is a document, and this one needs nothing.
const ContentSecurityPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"

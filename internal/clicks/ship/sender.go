package ship

import (
	"errors"
	"io"
	"time"

	"curt/internal/clicks/clicklog"
)

// Sender is a server whose clicks are counted elsewhere, and which may hold some that exist
// nowhere else. It is recorded in the database that statistics read, before its first click.
type Sender struct {
	Folder   string // names its data folder, for good; a folder has one life at a time
	Host     string // the machine that it ran on last
	Instance uint64 // of its present life, which stands for those before it
	// Began is not after any click that the folder held when this life began, nor after any that
	// came since.
	Began time.Time
	// Forgotten is when an operator declared that nothing more will come from it; zero = never.
	Forgotten time.Time
}

// Unsent returns a time that is not after any click that is still to be sent from a log, of
// whose Shipper state is the file; zero = there is none. With an error, nothing is known.
func Unsent(l *clicklog.Log, state string) (time.Time, error) {
	was, err := readShipped(state)
	if err != nil {
		return time.Time{}, err
	}
	r := l.Read(was.Position)
	defer r.Close()
	b, err := r.Next()
	switch {
	case errors.Is(err, io.EOF):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	}
	// What comes after the block is not before what the block promises.
	return time.UnixMilli(min(b.Earliest, b.Watermark)).UTC(), nil
}

package clickcost

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Base writes the same clicks as lines of a buffered access log, which is what a
// web server does with them: the floor that the pipeline is compared with.
func Base(c Config) (Cost, error) {
	f, err := os.Create(filepath.Join(c.Folder, "access.log"))
	if err != nil {
		return Cost{}, fmt.Errorf("base of click cost: %w", err)
	}
	src := newSource(c)
	before, err := cpu()
	if err != nil {
		return Cost{}, errors.Join(err, f.Close())
	}
	begin := time.Now()
	w := bufio.NewWriterSize(f, 64<<10)
	var line []byte
	for range c.Clicks {
		raw := src.next(time.Now().UnixMilli())
		line = strconv.AppendInt(line[:0], raw.Time, 10)
		line = raw.Addr.AppendTo(append(line, ' '))
		for _, field := range [][]byte{raw.Code, raw.Referrer, raw.UserAgent, raw.Language} {
			line = append(append(append(line, ` "`...), field...), '"')
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return Cost{}, errors.Join(err, f.Close())
		}
	}
	err = errors.Join(w.Flush(), f.Sync())
	wall := time.Since(begin)
	after, cpuErr := cpu()
	info, statErr := f.Stat()
	if err := errors.Join(err, cpuErr, statErr, f.Close()); err != nil {
		return Cost{}, fmt.Errorf("base of click cost: %w", err)
	}
	return Cost{Clicks: c.Clicks, CPU: after - before, Wall: wall, LogBytes: info.Size()}, nil
}

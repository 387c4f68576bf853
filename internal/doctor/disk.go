package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"curt/internal/datafolder"
)

const (
	leastFree  = 128 << 20 // two segments of the click log
	littleFree = 1 << 30
	// slowSync is what a create waits for: beyond it fewer than some thousand creates a
	// second share their fsyncs.
	slowSync = 50 * time.Millisecond
	// File systems by their magic numbers (statfs(2)): where SQLite's locks and
	// write-ahead log do not work, and where nothing outlives the power.
	nfsMagic, smbMagic, cifsMagic, smb2Magic = 0x6969, 0x517B, 0xFF534D42, 0xFE534D42
	tmpfsMagic, ramfsMagic                   = 0x01021994, 0x858458F6
)

// disk looks at the room, and at what the disk does with an fsync.
func (e *examination) disk(context.Context) {
	if !e.there {
		return
	}
	var st unix.Statfs_t
	if err := unix.Statfs(e.Config.Data, &st); err != nil {
		e.fail("disk", "check the disk", "check failed: %v", err)
		return
	}
	e.room(uint64(st.Bavail)*uint64(st.Bsize), st.Files, st.Ffree) //nolint:unconvert // of other widths on other systems
	switch uint64(uint32(st.Type)) {                               // signed on some systems
	case nfsMagic, smbMagic, cifsMagic, smb2Magic:
		e.fail("disk", "move CURT_DATA to a local disk", "%s is on a network file system, which can corrupt databases", e.Config.Data)
	case tmpfsMagic, ramfsMagic:
		e.warn("disk", "move CURT_DATA to a disk", "%s is in memory: a power cut loses everything", e.Config.Data)
	}
	e.fsync()
}

func (e *examination) room(free, inodes, freeInodes uint64) {
	grows := max(0, int64(e.Config.ClickLogMax)-folderSize(e.path("clicks")))
	advice := "free disk space; once it is full, creates return 507 and clicks wait in memory"
	switch {
	case free < leastFree:
		e.fail("disk", advice, "%s free", size(free))
	case free < littleFree:
		e.warn("disk", advice, "%s free", size(free))
	case uint64(grows) > free:
		e.warn("disk", "free disk space, or lower CURT_CLICK_LOG_MAX", "%s free, but the click log may grow by %s", size(free), size(uint64(grows)))
	default:
		e.ok("disk", "%s free", size(free))
	}
	if inodes > 0 && freeInodes < 1000 {
		e.warn("disk", "delete small files, or move CURT_DATA", "%d more files can be created", freeInodes)
	}
}

// size writes a number of bytes for people.
func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}

func folderSize(dir string) (n int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// fsync times what each create waits for.
func (e *examination) fsync() {
	f, err := os.CreateTemp(e.Config.Data, ".doctor-*")
	if err != nil {
		e.fail("disk", "give the user of curt write access", "cannot create a file: %v", err)
		return
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }() // empty by then, and nobody's
	var took []time.Duration
	for range 5 {
		begin := time.Now()
		_, err := f.WriteAt(make([]byte, 4096), 0)
		if err = errors.Join(err, f.Sync()); err != nil {
			e.fail("disk", "check the disk and the kernel log", "writes do not reach the disk: %v", err)
			return
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > slowSync {
		e.warn("disk", "use a faster disk: each create waits for an fsync", "an fsync takes %s", median.Round(time.Millisecond))
	} else {
		e.ok("disk", "an fsync takes %s", median.Round(10*time.Microsecond))
	}
}

// permissions looks for files that others may read.
func (e *examination) permissions(context.Context) {
	secrets := []string{e.path("admin.key"), e.path("curt.db"), e.path("clicks.db"), e.path("search.db"), e.Config.AdminKeyFile, e.Config.TLSKey}
	open := 0
	for _, path := range secrets {
		info, err := os.Stat(path)
		if path == "" || err != nil || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		open++
		report := e.warn // whoever reads a database reads links and hashes of keys
		if strings.HasSuffix(path, ".key") || path == e.Config.AdminKeyFile || path == e.Config.TLSKey {
			report = e.fail
		}
		report("permissions", "chmod 600 "+path, "%s has mode %04o: other users have access", path, info.Mode().Perm())
	}
	if info, err := os.Stat(e.Config.Data); err == nil && info.Mode().Perm()&0o022 != 0 {
		open++
		e.fail("permissions", "chmod 750 "+e.Config.Data, "other users can write to %s (mode %04o)", e.Config.Data, info.Mode().Perm())
	}
	if open == 0 && e.there {
		e.ok("permissions", "secrets are private to their owner")
	}
}

// folder is the data folder: where its files are, and whether a server uses it.
type folder struct {
	dir   string
	there bool // it exists
	held  bool // a server uses it
}

// path returns the path of a file of the folder.
func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// file returns the path of a database, and whether it exists; a server creates those that do not.
func (f *folder) file(name string) (string, bool) {
	if !f.there {
		return "", false
	}
	path := f.path(name)
	_, err := os.Stat(path)
	return path, err == nil
}

// missing reports whether a folder that a server has used lacks a file.
func (f *folder) missing(name string) bool {
	_, there := f.file(name)
	return f.there && !there && datafolder.Used(f.dir)
}

// linesOf is at most three of them, and how many more there are.
func linesOf(lines []string) string {
	const most = 3
	if more := len(lines) - most; more > 0 {
		return strings.Join(lines[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(lines, "; ")
}

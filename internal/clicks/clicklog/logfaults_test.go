package clicklog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
)

// brokenFrom is a file whose disk fails from an offset on.
type brokenFrom struct {
	io.ReaderAt
	at int64
}

func (f brokenFrom) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > f.at {
		return 0, syscall.EIO
	}
	return f.ReaderAt.ReadAt(b, at)
}

// A disk that fails is neither a torn end nor a damage: nothing may be cut off for it.
func TestAFailingDiskIsNoTornEnd(t *testing.T) {
	block := clicklogtest.SealOne(7, 0, clicklogtest.UsualClick())
	whole := bytes.Repeat(block, 3)
	damaged := bytes.Clone(whole)
	damaged[len(block)+12] ^= 0x81 // the second block's size
	strange := append(bytes.Clone(block), bytes.Repeat([]byte{0xaa}, 10_000)...)
	for name, file := range map[string][]byte{"whole": whole, "damaged": damaged, "without a block behind a damage": strange} {
		for at := int64(1); at < int64(len(file)); at += 97 {
			end, _, err := clicklog.SegmentEnd(brokenFrom{bytes.NewReader(file), at}, int64(len(file)))
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: with a disk that fails at %d of %d: ends at %d, %v", name, at, len(file), end, err)
			}
		}
		if _, _, err := clicklog.SegmentEnd(bytes.NewReader(file), int64(len(file))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// brokenOnce fails one read, the n-th.
type brokenOnce struct {
	io.ReaderAt
	n *int
}

func (f brokenOnce) ReadAt(b []byte, at int64) (int, error) {
	if *f.n--; *f.n == 0 {
		return 0, syscall.EIO
	}
	return f.ReaderAt.ReadAt(b, at)
}

// Whichever read of a segment fails, nobody says where it ends.
func TestOneFailedReadIsEnough(t *testing.T) {
	block := clicklogtest.SealOne(7, 0, clicklogtest.UsualClick())
	damaged := bytes.Repeat(block, 4)
	damaged[len(block)+12] ^= 0x81
	damaged = append(damaged, bytes.Repeat([]byte{0xaa}, 9000)...) // and no torn end
	for n := 1; ; n++ {
		left := n
		_, _, err := clicklog.SegmentEnd(brokenOnce{bytes.NewReader(damaged), &left}, int64(len(damaged)))
		if left > 0 { // it needs no more
			if err != nil || n < 8 {
				t.Errorf("%d reads, %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("with read %d failing: %v", n, err)
		}
	}
}

// A torn block is cut off where it begins, also when it holds what looks like a beginning.
func TestATornBlockIsCutWhereItBegins(t *testing.T) {
	c := clicklogtest.UsualClick()
	c.UserAgent = bytes.Repeat([]byte("CURTCLK2"), 30)
	blocks := append(clicklogtest.Three(), clicklogtest.SealOne(7, 3, c))
	whole := 3 * len(blocks[0])
	log, path, _ := ended(t, blocks, func(b []byte) []byte { return b[:len(b)-5] })
	if info, err := os.Stat(path); err != nil || info.Size() != int64(whole) {
		t.Errorf("%d bytes are left, want %d: %v", info.Size(), whole, err)
	}
	if found, damages := readable(t, log); fmt.Sprint(found) != "[0 1 2]" || damages != 0 {
		t.Errorf("read %v with %d damages", found, damages)
	}
}

// A segment that is nothing but a torn block is empty, and no damage.
func TestATornFirstBlockIsCutOff(t *testing.T) {
	log, path, said := ended(t, clicklogtest.Three()[:1], func(b []byte) []byte { return b[:len(b)-5] })
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || log.Stats().Damages != 0 || log.Stats().Segments != 0 {
		t.Errorf("it is left, where an empty segment is one that lost its clicks: %v, %+v, %q", err, log.Stats(), said)
	}
}

// Segments that go while a folder is read are passed over.
func TestAReaderPassesOverSegmentsThatAreGone(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, SegmentBytes: 700}) // two blocks each
	for i := range uint64(8) {
		clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay())
	}
	r, err := clicklog.ReadDir(dir, clicklog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := clicklogtest.SegmentFiles(t, dir)
	for _, i := range []int{0, 2} {
		if err := os.Remove(files[i]); err != nil {
			t.Fatal(err)
		}
	}
	events, err := clicklogtest.ReadOn(r)
	if got := fmt.Sprint(clicklogtest.Sequences(events)); err != nil || got != "[2 3 6 7]" {
		t.Errorf("read %s, %v; want [2 3 6 7]", got, err)
	}
	if _, err := clicklog.ReadDir(filepath.Join(dir, "nowhere"), clicklog.Position{}); err == nil {
		t.Error("a folder that is not there is read")
	}
}

// What is not set has the bounds that the configuration promises.
func TestFoldedSegmentsStayThirtyDays(t *testing.T) {
	log := clicklogtest.Open(t, clicklog.Config{})
	old := clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
	clicklogtest.AppendOne(t, log, 1, clicklogtest.SomeDay().Add(25*time.Hour)) // the segment before is a day old, and ends
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.Commit(old)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{30 * 24 * time.Hour, "[0 1]"}, {30*24*time.Hour + 1, "[1]"}} {
		log.Trim(t.Context(), clicklogtest.SomeDay().Add(c.after))
		if got := fmt.Sprint(clicklogtest.Sequences(clicklogtest.ReadAll(t, log))); got != c.want {
			t.Errorf("after %s %s are left, want %s", c.after, got, c.want)
		}
	}
}

// A log that is as large as it may be loses nothing.
func TestTheBoundItselfIsKept(t *testing.T) {
	block := int64(len(clicklogtest.SealOne(7, 0, clicklogtest.UsualClick())))
	log := clicklogtest.Open(t, clicklog.Config{SegmentBytes: 2 * block, MaxBytes: 6 * block})
	for i := range uint64(6) {
		clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay())
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	log.Trim(t.Context(), clicklogtest.SomeDay())
	if got := fmt.Sprint(clicklogtest.Sequences(clicklogtest.ReadAll(t, log))); got != "[0 1 2 3 4 5]" {
		t.Errorf("%s are left of a log that is not past its bound", got)
	}
}

// A counted end that is gone is told once.
func TestACountedEndThatIsGoneIsTold(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir})
	clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
	end := clicklogtest.AppendOne(t, log, 1, clicklogtest.SomeDay())
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(clicklogtest.SegmentFiles(t, dir)[0], end.Offset-5); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	log = clicklogtest.Open(t, clicklog.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	for range 2 {
		log.Commit(end)
	}
	if n := strings.Count(said.String(), "those clicks are counted"); n != 1 {
		t.Errorf("told %d times: %s", n, said.String())
	}
}

package clicks_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"curt/internal/clicks"
	"curt/internal/testkit"
)

func someDay() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

func openLog(t *testing.T, c clicks.LogConfig) *clicks.Log {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	log, err := clicks.OpenLog(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Log(err)
		}
	})
	return log
}

// event is an Event that outlives its block.
type event struct {
	ID        clicks.EventID
	Time      int64
	Outcome   clicks.Outcome
	Flags     clicks.Flags
	Visitor   uint64
	Key       []byte
	UserAgent string
	Referrer  string
	Language  string
	Query     string
}

func keep(e *clicks.Event) event {
	return event{
		e.ID, e.Time, e.Outcome, e.Flags, e.Visitor, bytes.Clone(e.Key),
		string(e.UserAgent), string(e.Referrer), string(e.Language), string(e.Query),
	}
}

// readOn reads until the end of the log or an error.
func readOn(r *clicks.Reader) (events []event, err error) {
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		err = b.Events(func(e *clicks.Event) error { events = append(events, keep(e)); return nil })
		if err != nil {
			return events, err
		}
	}
}

func readAll(t *testing.T, log *clicks.Log) []event {
	t.Helper()
	r := log.Read(clicks.Position{})
	defer r.Close()
	events, err := readOn(r)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func appendOne(t *testing.T, log *clicks.Log, sequence uint64, now time.Time) clicks.Position {
	t.Helper()
	p, err := log.Append(clicks.SealOne(7, sequence, usualClick()), now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.clicks"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sequences(events []event) (s []uint64) {
	for _, e := range events {
		s = append(s, e.ID.Sequence)
	}
	return s
}

func TestLogIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir, SegmentBytes: 1000})
	for i := range uint64(20) {
		appendOne(t, log, i, someDay())
	}
	if n := len(segmentFiles(t, dir)); n < 5 {
		t.Errorf("20 blocks of 300 bytes in %d segments of 1000", n)
	}
	events := readAll(t, log)
	if len(events) != 20 {
		t.Fatalf("read %d events of 20", len(events))
	}
	want := usualClick()
	if e := events[3]; e.ID != (clicks.EventID{Instance: 7, Sequence: 3}) || e.Time != want.Time || e.UserAgent != string(want.UserAgent) ||
		e.Referrer != string(want.Referrer) || e.Language != string(want.Language) || e.Query != string(want.Query) || e.Outcome != want.Outcome {
		t.Errorf("event differs: %+v", e)
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	if log.Synced() != log.End() {
		t.Errorf("synced %v, end %v", log.Synced(), log.End())
	}
}

func TestReaderWaitsAtTheEndAndGoesOn(t *testing.T) {
	log := openLog(t, clicks.LogConfig{SegmentBytes: 600})
	r := log.Read(clicks.Position{})
	defer r.Close()
	for i := range uint64(7) {
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("Next at the end: %v", err)
		}
		end := appendOne(t, log, i, someDay())
		b, err := r.Next()
		if err != nil || b.First.Sequence != i || b.Next != end || r.Position() != end {
			t.Fatalf("block %d: %+v, %v", i, b, err)
		}
	}
}

func TestTornTailIsCutOff(t *testing.T) {
	testkit.Unraced(t)
	for cut := range 300 {
		dir := t.TempDir()
		log := openLog(t, clicks.LogConfig{Dir: dir})
		appendOne(t, log, 0, someDay())
		whole := appendOne(t, log, 1, someDay())
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		path := segmentFiles(t, dir)[0]
		torn := clicks.SealOne(7, 2, usualClick())
		torn = torn[:min(cut+1, len(torn)-1)]
		if err := appendFile(path, torn); err != nil {
			t.Fatal(err)
		}
		log = openLog(t, clicks.LogConfig{Dir: dir})
		if got := log.Stats().TruncatedBytes; got != uint64(len(torn)) {
			t.Fatalf("cut %d: truncated %d bytes of %d", cut, got, len(torn))
		}
		if log.End() != whole {
			t.Fatalf("cut %d: end %v, want %v", cut, log.End(), whole)
		}
		appendOne(t, log, 3, someDay().Add(time.Hour))
		if got := sequences(readAll(t, log)); fmt.Sprint(got) != "[0 1 3]" {
			t.Fatalf("cut %d: read %v", cut, got)
		}
		if n := len(segmentFiles(t, dir)); n != 2 {
			t.Fatalf("cut %d: %d segments, want a new one", cut, n)
		}
	}
}

func appendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

func TestDamagedMiddleIsReportedAndPassedOver(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir, SegmentBytes: 1200})
	var ends []clicks.Position
	for i := range uint64(9) {
		ends = append(ends, appendOne(t, log, i, someDay()))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentFiles(t, dir)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[ends[0].Offset+100] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	log = openLog(t, clicks.LogConfig{Dir: dir})
	r := log.Read(clicks.Position{})
	defer r.Close()
	events, err := readOn(r)
	var damage *clicks.DamageError
	if !errors.As(err, &damage) || damage.File != path || damage.Offset != ends[0].Offset {
		t.Fatalf("err = %v, want damage of %s at %d", err, path, ends[0].Offset)
	}
	if _, again := r.Next(); !errors.As(again, &damage) {
		t.Fatalf("the damage was reported once only, then %v", again)
	}
	r.Skip()
	rest, err := readOn(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := sequences(events); fmt.Sprint(got) != "[0]" {
		t.Errorf("before the damage: %v", got)
	}
	if got := sequences(rest); fmt.Sprint(got) != "[2 3 4 5 6 7 8]" {
		t.Errorf("after it: %v", got)
	}
}

func TestDamageBeforeWholeBlocksIsNoTornTail(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, clicks.LogConfig{Dir: dir})
	for i := range uint64(3) {
		appendOne(t, log, i, someDay())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentFiles(t, dir)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[400] ^= 1 // in the second block
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	log = openLog(t, clicks.LogConfig{Dir: dir})
	if info, err := os.Stat(path); err != nil || info.Size() != int64(len(b)) || log.Stats().TruncatedBytes != 0 {
		t.Errorf("whole blocks behind a damage were cut off: %v", info.Size())
	}
}

// fullDisk is a segment file on a disk that runs full in the middle of a write.
type fullDisk struct {
	clicks.SegmentFile
	room        *atomic.Int64
	noTruncates bool
}

func (f fullDisk) WriteAt(b []byte, at int64) (int, error) {
	if room := f.room.Load(); int64(len(b)) > room {
		n, _ := f.SegmentFile.WriteAt(b[:room], at)
		return n, &os.PathError{Op: "write", Err: syscall.ENOSPC}
	}
	return f.SegmentFile.WriteAt(b, at)
}

func (f fullDisk) Truncate(size int64) error {
	if f.noTruncates {
		return syscall.EIO
	}
	return f.SegmentFile.Truncate(size)
}

func TestPartialWriteIsNeverRead(t *testing.T) {
	for _, noTruncates := range []bool{false, true} {
		dir := t.TempDir()
		var room atomic.Int64
		room.Store(1 << 20)
		config := clicks.LogConfig{Dir: dir}.WithFiles(func(path string) (clicks.SegmentFile, error) {
			f, err := clicks.CreateSegment(path)
			return fullDisk{f, &room, noTruncates}, err
		})
		log := openLog(t, config)
		appendOne(t, log, 0, someDay())
		room.Store(50)
		if _, err := log.Append(clicks.SealOne(7, 1, usualClick()), someDay()); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("append to a full disk: %v", err)
		}
		if got := sequences(readAll(t, log)); fmt.Sprint(got) != "[0]" {
			t.Fatalf("read %v after a partial write", got)
		}
		room.Store(1 << 20)
		appendOne(t, log, 1, someDay())
		appendOne(t, log, 2, someDay())
		if got := sequences(readAll(t, log)); fmt.Sprint(got) != "[0 1 2]" {
			t.Fatalf("read %v after space returned", got)
		}
		if got := log.Stats().AppendErrors; got != 1 {
			t.Errorf("AppendErrors = %d", got)
		}
	}
}

// FuzzReader feeds any bytes as a segment: whatever is read must be blocks that
// lie there whole, the rest must be reported as damage at the right place.
func FuzzReader(f *testing.F) {
	two := append(clicks.SealOne(7, 0, usualClick()), clicks.SealOne(7, 1, usualClick())...)
	f.Add(two, 0, byte(0))
	f.Add(two, 15, byte(0xff))
	f.Add(two[:len(two)-3], 80, byte(1))
	f.Add([]byte("CURTCLK2"), 3, byte(1))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		if len(b) > 0 && at >= 0 {
			b = bytes.Clone(b)
			b[at%len(b)] ^= flip
		}
		next := int64(0)
		err := clicks.Scan(bytes.NewReader(b), int64(len(b)), func(block *clicks.Block) error {
			if block.At.Offset != next || block.Next.Offset < next+clicks.HeadSize || block.Next.Offset > int64(len(b)) {
				t.Fatalf("block from %d to %d after %d in %d bytes", block.At.Offset, block.Next.Offset, next, len(b))
			}
			next = block.Next.Offset
			n := 0
			err := block.Events(func(*clicks.Event) error { n++; return nil })
			if err == nil && n != block.Count {
				t.Fatalf("%d events of %d", n, block.Count)
			}
			return nil // a good checksum over a bad record is a faulty writer's, and an error
		})
		var damage *clicks.DamageError
		switch {
		case errors.Is(err, io.EOF):
			if next != int64(len(b)) {
				t.Fatalf("ended at %d of %d without a damage", next, len(b))
			}
		case errors.As(err, &damage):
			if damage.Offset != next {
				t.Fatalf("damage at %d, want %d", damage.Offset, next)
			}
		default:
			t.Fatalf("unexpected error %v", err)
		}
	})
}

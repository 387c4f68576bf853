package clicklog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/testkit"
)

func TestLogIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, SegmentBytes: 1000})
	for i := range uint64(20) {
		clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay())
	}
	if n := len(clicklogtest.SegmentFiles(t, dir)); n < 5 {
		t.Errorf("20 blocks of 300 bytes in %d segments of 1000", n)
	}
	events := clicklogtest.ReadAll(t, log)
	if len(events) != 20 {
		t.Fatalf("read %d events of 20", len(events))
	}
	want := clicklogtest.UsualClick()
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
	log := clicklogtest.Open(t, clicklog.Config{SegmentBytes: 600})
	r := log.Read(clicklog.Position{})
	defer r.Close()
	for i := range uint64(7) {
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("Next at the end: %v", err)
		}
		end := clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay())
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
		log := clicklogtest.Open(t, clicklog.Config{Dir: dir})
		clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
		whole := clicklogtest.AppendOne(t, log, 1, clicklogtest.SomeDay())
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		path := clicklogtest.SegmentFiles(t, dir)[0]
		torn := clicklogtest.SealOne(7, 2, clicklogtest.UsualClick())
		torn = torn[:min(cut+1, len(torn)-1)]
		if err := clicklogtest.AppendFile(path, torn); err != nil {
			t.Fatal(err)
		}
		log = clicklogtest.Open(t, clicklog.Config{Dir: dir})
		if got := log.Stats().TruncatedBytes; got != uint64(len(torn)) {
			t.Fatalf("cut %d: truncated %d bytes of %d", cut, got, len(torn))
		}
		if log.End() != whole {
			t.Fatalf("cut %d: end %v, want %v", cut, log.End(), whole)
		}
		clicklogtest.AppendOne(t, log, 3, clicklogtest.SomeDay().Add(time.Hour))
		if got := clicklogtest.Sequences(clicklogtest.ReadAll(t, log)); fmt.Sprint(got) != "[0 1 3]" {
			t.Fatalf("cut %d: read %v", cut, got)
		}
		if n := len(clicklogtest.SegmentFiles(t, dir)); n != 2 {
			t.Fatalf("cut %d: %d segments, want a new one", cut, n)
		}
	}
}

func TestDamagedMiddleIsReportedAndPassedOver(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir, SegmentBytes: 1200})
	var ends []clicklog.Position
	for i := range uint64(9) {
		ends = append(ends, clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay()))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := clicklogtest.SegmentFiles(t, dir)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[ends[0].Offset+100] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	log = clicklogtest.Open(t, clicklog.Config{Dir: dir})
	r := log.Read(clicklog.Position{})
	defer r.Close()
	events, err := clicklogtest.ReadOn(r)
	var damage *clicklog.DamageError
	if !errors.As(err, &damage) || damage.File != path || damage.Offset != ends[0].Offset {
		t.Fatalf("err = %v, want damage of %s at %d", err, path, ends[0].Offset)
	}
	if _, again := r.Next(); !errors.As(again, &damage) {
		t.Fatalf("the damage was reported once only, then %v", again)
	}
	r.Skip()
	rest, err := clicklogtest.ReadOn(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := clicklogtest.Sequences(events); fmt.Sprint(got) != "[0]" {
		t.Errorf("before the damage: %v", got)
	}
	if got := clicklogtest.Sequences(rest); fmt.Sprint(got) != "[2 3 4 5 6 7 8]" {
		t.Errorf("after it: %v", got)
	}
}

func TestDamageBeforeWholeBlocksIsNoTornTail(t *testing.T) {
	dir := t.TempDir()
	log := clicklogtest.Open(t, clicklog.Config{Dir: dir})
	for i := range uint64(3) {
		clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := clicklogtest.SegmentFiles(t, dir)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[400] ^= 1 // in the second block
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	log = clicklogtest.Open(t, clicklog.Config{Dir: dir})
	if info, err := os.Stat(path); err != nil || info.Size() != int64(len(b)) || log.Stats().TruncatedBytes != 0 {
		t.Errorf("whole blocks behind a damage were cut off: %v", info.Size())
	}
}

func TestPartialWriteIsNeverRead(t *testing.T) {
	for _, noTruncates := range []bool{false, true} {
		dir := t.TempDir()
		var room atomic.Int64
		room.Store(1 << 20)
		config := clicklog.Config{Dir: dir, Create: clicklogtest.OnFullDisk(&room, noTruncates)}
		log := clicklogtest.Open(t, config)
		clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
		room.Store(50)
		if _, err := log.Append(clicklogtest.SealOne(7, 1, clicklogtest.UsualClick()), clicklogtest.SomeDay()); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("append to a full disk: %v", err)
		}
		if got := clicklogtest.Sequences(clicklogtest.ReadAll(t, log)); fmt.Sprint(got) != "[0]" {
			t.Fatalf("read %v after a partial write", got)
		}
		room.Store(1 << 20)
		clicklogtest.AppendOne(t, log, 1, clicklogtest.SomeDay())
		clicklogtest.AppendOne(t, log, 2, clicklogtest.SomeDay())
		if got := clicklogtest.Sequences(clicklogtest.ReadAll(t, log)); fmt.Sprint(got) != "[0 1 2]" {
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
	two := append(clicklogtest.SealOne(7, 0, clicklogtest.UsualClick()), clicklogtest.SealOne(7, 1, clicklogtest.UsualClick())...)
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
		err := clicklog.Scan(bytes.NewReader(b), int64(len(b)), func(block *clicklog.Block) error {
			if block.At.Offset != next || block.Next.Offset < next+clicklog.HeadSize || block.Next.Offset > int64(len(b)) {
				t.Fatalf("block from %d to %d after %d in %d bytes", block.At.Offset, block.Next.Offset, next, len(b))
			}
			next = block.Next.Offset
			n := 0
			err := block.Events(func(*clicklog.Event) error { n++; return nil })
			if err == nil && n != block.Count {
				t.Fatalf("%d events of %d", n, block.Count)
			}
			return nil // a good checksum over a bad record is a faulty writer's, and an error
		})
		var damage *clicklog.DamageError
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

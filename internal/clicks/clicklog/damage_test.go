package clicklog_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
)

// ended makes a log of blocks, lets somebody change its only segment, and opens it again.
// It returns what the opening logged.
func ended(t *testing.T, blocks [][]byte, change func(b []byte) []byte) (log *clicklog.Log, path, said string) {
	t.Helper()
	dir := t.TempDir()
	log = clicklogtest.Open(t, clicklog.Config{Dir: dir})
	for _, b := range blocks {
		if _, err := log.Append(b, clicklogtest.SomeDay()); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path = clicklogtest.SegmentFiles(t, dir)[0]
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	log = clicklogtest.Open(t, clicklog.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	return log, path, lines.String()
}

// readable reads all that is whole, and how many damages there are.
func readable(t *testing.T, log *clicklog.Log) (found []uint64, damages int) {
	t.Helper()
	r := log.Read(clicklog.Position{})
	defer r.Close()
	for {
		events, err := clicklogtest.ReadOn(r)
		found = append(found, clicklogtest.Sequences(events)...)
		if err == nil {
			return found, damages
		}
		damages++
		r.Skip()
	}
}

// TestADamagedLastBlockIsNoTornEnd changes bytes of the last block in turn. The file
// stays as it is and the damage is told, but where the size became greater than what is
// there: a write that was cut short looks like that.
func TestADamagedLastBlockIsNoTornEnd(t *testing.T) {
	blocks := clicklogtest.Three()
	length := len(blocks[2])
	for i := range length {
		if i > clicklog.HeadSize && i%16 > 0 {
			continue // every byte of the head, and some of the records
		}
		var changed []byte
		log, path, said := ended(t, blocks, func(b []byte) []byte {
			b[len(b)-length+i] ^= 0x11
			changed = b
			return b
		})
		size := int(binary.LittleEndian.Uint32(changed[len(changed)-length+12:]))
		short := i >= 12 && i < 16 && size > length-clicklog.HeadSize && size <= 1<<20
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		stats := log.Stats()
		if cut := info.Size() < int64(len(changed)); cut != short || (stats.TruncatedBytes > 0) != short || (stats.Damages == 1) == short {
			t.Errorf("byte %d: cut %v, %+v", i, cut, stats)
		}
		if want := map[bool]string{false: "click log is damaged", true: "torn tail"}[short]; !strings.Contains(said, want) {
			t.Errorf("byte %d: the log says %q", i, said)
		}
		clicklogtest.AppendOne(t, log, 3, clicklogtest.SomeDay().Add(time.Hour))
		if found, _ := readable(t, log); fmt.Sprint(found) != "[0 1 3]" {
			t.Errorf("byte %d: read %v", i, found)
		}
	}
}

// TestOnlyTheDamagedBlockIsLost changes each block in turn, in its head and elsewhere.
func TestOnlyTheDamagedBlockIsLost(t *testing.T) {
	blocks := clicklogtest.Three()
	for i := range blocks {
		for _, at := range []int{0, 12, 100} {
			log, _, said := ended(t, blocks, func(b []byte) []byte {
				b[i*len(blocks[0])+at] ^= 0x81
				return b
			})
			want := fmt.Sprint(append(append([]uint64{}, []uint64{0, 1, 2}[:i]...), []uint64{0, 1, 2}[i+1:]...))
			found, damages := readable(t, log)
			if fmt.Sprint(found) != want || damages != 1 || log.Stats().Damages != 1 || !strings.Contains(said, "click log is damaged") {
				t.Errorf("block %d, byte %d: read %v with %d damages, %+v, %q", i, at, found, damages, log.Stats(), said)
			}
		}
	}
}

// TestPagesThatWereNeverWrittenAreATornEnd: the disk got the length of a file, and of its
// data only the first pages.
func TestPagesThatWereNeverWrittenAreATornEnd(t *testing.T) {
	many := make([]clicks.Raw, 60)
	for i := range many {
		many[i] = *clicklogtest.UsualClick()
	}
	blocks := append(clicklogtest.Three(), clicklogtest.SealMany(3, many))
	whole := 3 * len(blocks[0])
	for _, zeros := range []int{4096, 8192, 0} {
		log, path, said := ended(t, blocks, func(b []byte) []byte {
			from := zeros
			if zeros == 0 { // nothing of the block was written
				from = whole
			}
			clear(b[from:])
			return b
		})
		info, err := os.Stat(path)
		if err != nil || info.Size() != int64(whole) || log.Stats().Damages != 0 || !strings.Contains(said, "torn tail") {
			t.Errorf("zeros from %d: %d bytes are left of %d, %+v, %q: %v", zeros, info.Size(), whole, log.Stats(), said, err)
		}
	}
	// Zeros that begin within a page were written by somebody.
	log, path, _ := ended(t, blocks, func(b []byte) []byte {
		clear(b[whole+100 : whole+1000])
		return b
	})
	if info, err := os.Stat(path); err != nil || log.Stats().Damages != 1 || info.Size() <= int64(whole) {
		t.Errorf("%+v: %v", log.Stats(), err)
	}
}

// TestWhatWasCountedIsNotTorn: clicks are counted only once they are on the disk.
func TestWhatWasCountedIsNotTorn(t *testing.T) {
	var end clicklog.Position
	shorten := func(b []byte) []byte { return b[:len(b)-5] }
	log, _, _ := ended(t, clicklogtest.Three(), func(b []byte) []byte {
		end.Offset = int64(len(b))
		return shorten(b)
	})
	end.Segment = log.End().Segment
	if s := log.Stats(); s.Damages != 0 || s.TruncatedBytes == 0 {
		t.Errorf("%+v", s)
	}
	log.Commit(end)
	log.Commit(end)
	if s := log.Stats(); s.Damages != 1 {
		t.Errorf("%+v", s)
	}
}

// TestAVisitorsTextIsNoBlock: what looks like the beginning of a block, in what a visitor
// sends, is passed over in search of the next one.
func TestAVisitorsTextIsNoBlock(t *testing.T) {
	c := clicklogtest.UsualClick()
	c.UserAgent = bytes.Repeat([]byte("CURTCLK2"), 60)
	c.Referrer = bytes.Repeat([]byte("CURTCLK2\xff\xff\xff\xff\xff\xff\x09"), 30)
	blocks := [][]byte{clicklogtest.SealOne(7, 0, c), clicklogtest.SealOne(7, 1, c), clicklogtest.SealOne(7, 2, c)}
	log, _, _ := ended(t, blocks, func(b []byte) []byte {
		b[len(blocks[0])+8] ^= 1
		return b
	})
	if found, damages := readable(t, log); fmt.Sprint(found) != "[0 2]" || damages != 1 {
		t.Errorf("read %v with %d damages", found, damages)
	}
}

// TestALongDamageIsPassedOver: the next block lies farther behind than is read at once,
// across the border of two readings.
func TestALongDamageIsPassedOver(t *testing.T) {
	for _, length := range []int{256<<10 - 3, 256 << 10, 256<<10 + 72, 700_001} {
		log, _, _ := ended(t, clicklogtest.Three(), func(b []byte) []byte {
			first := len(b) / 3
			return append(append(bytes.Clone(b[:first]), bytes.Repeat([]byte{0xaa}, length)...), b[first:]...)
		})
		if found, damages := readable(t, log); fmt.Sprint(found) != "[0 1 2]" || damages != 1 {
			t.Errorf("%d bytes: read %v with %d damages", length, found, damages)
		}
	}
}

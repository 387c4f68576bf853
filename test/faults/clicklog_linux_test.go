package faults_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

// recount reads the click log by its documented format, with code of its own, and
// returns how many events it holds. It fails the test on damage, and when an
// instance's sequence has a gap or comes twice: that would be lost or doubled
// clicks.
func recount(t *testing.T, data string) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "clicks", "*.clicks"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no click log in %s: %v", data, err)
	}
	next := map[uint64]uint64{} // by instance
	var sum int64
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := countBlocks(text, next)
		if err != nil {
			t.Fatalf("click log %s: %v", filepath.Base(name), err)
		}
		sum += n
	}
	return sum
}

// countBlocks adds up the blocks of one segment: magic, CRC-32C, size, count, the
// instance and its first sequence, then the records.
func countBlocks(text []byte, next map[uint64]uint64) (sum int64, err error) {
	const head = 72
	for at := 0; at < len(text); {
		b := text[at:]
		if len(b) < head || string(b[:8]) != "CURTCLK2" {
			return 0, fmt.Errorf("no block at %d of %d", at, len(text))
		}
		size := head + int(binary.LittleEndian.Uint32(b[12:]))
		if size > len(b) {
			return 0, fmt.Errorf("the block at %d is cut off", at)
		}
		if crc32.Checksum(b[12:size], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(b[8:]) {
			return 0, fmt.Errorf("the block at %d has a wrong checksum", at)
		}
		count := uint64(binary.LittleEndian.Uint32(b[16:]))
		instance, first := binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])
		if want := next[instance]; first != want {
			return 0, fmt.Errorf("the block at %d begins with event %d of instance %x, want %d", at, first, instance, want)
		}
		next[instance] = first + count
		sum += int64(count)
		at += size
	}
	return sum, nil
}

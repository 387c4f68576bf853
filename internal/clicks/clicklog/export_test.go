package clicklog

import (
	"io"
)

const HeadSize = headSize

// Scan reads all blocks of a segment as the reader does.
func Scan(file io.ReaderAt, size int64, f func(*Block) error) error {
	s := Scanner{file: file, name: "segment", size: size}
	for {
		b, err := s.Next()
		if err != nil {
			return err
		}
		if err := f(&b); err != nil {
			return err
		}
	}
}

// SegmentEnd is where a segment ends that may have been written to when its machine died.
func SegmentEnd(f io.ReaderAt, size int64) (int64, []*DamageError, error) {
	return segmentEnd(f, "segment", size, 0)
}

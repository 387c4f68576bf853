package clicks

import "io"

// What tests of faults need of this package, and nobody else.

const (
	IndexPageSize = pageSize
	IndexPageHead = pageHead
	Crowd         = crowd
)

// SegmentEnd is where a segment ends that may have been written to when its machine died.
func SegmentEnd(f io.ReaderAt, size int64) (int64, []*DamageError, error) {
	return segmentEnd(f, "segment", size, 0)
}

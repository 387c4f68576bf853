package walfile

import "bytes"

// Walk is Examine for a log in memory.
func Walk(log []byte) (Report, error) {
	w := walk{report: Report{Size: int64(len(log))}, from: bytes.NewReader(log)}
	err := w.run()
	return w.report, err
}

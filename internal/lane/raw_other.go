//go:build !linux

package lane

// rawConn is for Linux; elsewhere net.Conn is read.
type rawConn struct{}

func newRawConn(*conn) *rawConn { return nil }

func (*rawConn) next(*conn) ([]byte, *scratch, error) { return nil, nil, nil }

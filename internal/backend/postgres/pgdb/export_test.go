package pgdb

import (
	"context"
	"net"
)

// Dial connects as pools do.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return dial(ctx, network, address)
}

package redis

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/rueidis"
)

// State is what a Redis server says of itself.
type State struct {
	Version     string
	Mode        string   // standalone, cluster; "sentinel" = Sentinels name the server
	Replicas    int      // connected ones, of the primary
	Unavailable []string // nodes and Sentinels of the URL that accept no connection
}

// Inspect reads the state of the server of a URL, with Sentinel that of the primary.
func Inspect(ctx context.Context, url string) (s State, err error) {
	o, err := options(url)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	for _, address := range o.InitAddress {
		conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", address)
		if err != nil {
			s.Unavailable = append(s.Unavailable, address)
			continue
		}
		_ = conn.Close() // nothing was sent
	}
	conn, err := rueidis.NewClient(o)
	if err != nil {
		return s, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	info, err := conn.Do(ctx, conn.B().Info().Build()).ToString()
	if err != nil {
		return s, fmt.Errorf("query failed: %w", err)
	}
	s.Version, s.Mode = field(info, "redis_version"), field(info, "redis_mode")
	if o.Sentinel.MasterSet != "" {
		s.Mode = "sentinel"
	}
	s.Replicas, _ = strconv.Atoi(field(info, "connected_slaves")) // 0 of what is no number
	return s, nil
}

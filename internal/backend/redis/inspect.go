package redis

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// State is what a Redis server says of itself.
type State struct {
	Version     string
	Mode        string   // standalone, cluster; "sentinel" = Sentinels name the server
	Primary     string   // with Sentinel, the address of the primary, also of one that is down; "" = no Sentinel says
	Replicas    int      // connected ones, of the primary
	Unavailable []string // nodes and Sentinels of the URL that accept no connection
}

// Inspect reads the state of the server of a URL, with Sentinel that of the primary. What it has found out it
// returns with an error, too.
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
	if o.Sentinel.MasterSet != "" {
		s.Mode, s.Primary = "sentinel", primary(ctx, o, s.Unavailable)
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
	s.Version = field(info, "redis_version")
	if s.Mode == "" {
		s.Mode = field(info, "redis_mode")
	}
	s.Replicas, _ = strconv.Atoi(field(info, "connected_slaves")) // 0 of what is no number
	return s, nil
}

// primary returns the address that the first Sentinel gives that answers; "" = none does.
func primary(ctx context.Context, o rueidis.ClientOption, unavailable []string) string {
	for _, address := range o.InitAddress {
		if slices.Contains(unavailable, address) {
			continue
		}
		sentinel, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{address}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
			Dialer: net.Dialer{Timeout: dialLimit}, ConnWriteTimeout: stalled, ClientSetInfo: rueidis.DisableClientSetInfo,
		})
		if err != nil {
			continue
		}
		at, err := sentinel.Do(ctx, sentinel.B().SentinelGetMasterAddrByName().Master(o.Sentinel.MasterSet).Build()).AsStrSlice()
		sentinel.Close()
		if err == nil && len(at) == 2 {
			return net.JoinHostPort(at[0], at[1])
		}
	}
	return ""
}

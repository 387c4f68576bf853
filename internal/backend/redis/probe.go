package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// leastVersion is the oldest Redis that is tested, and the first with sharded Pub/Sub.
const leastVersion = 7

// probeLimit bounds all that Probe asks once it is connected.
const probeLimit = 5 * stalled

// Probe connects, asks what the server is and says so in one line; it leaves nothing
// behind. An error is one line, too, and shows no password.
func Probe(ctx context.Context, url string) (string, error) {
	o, err := options(url)
	if err != nil {
		return "", err
	}
	conn, err := rueidis.NewClient(o)
	if err != nil {
		return "", fmt.Errorf("cannot connect: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	timed, done := context.WithTimeout(ctx, stalled)
	defer done()
	info, err := conn.Do(timed, conn.B().Info().Build()).ToString()
	if err != nil {
		return "", fmt.Errorf("query failed: %w", err)
	}
	version, policy := field(info, "redis_version"), field(info, "maxmemory_policy")
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastVersion {
		return "", fmt.Errorf("is Redis %s; expected %d or newer", version, leastVersion)
	}
	if err := allowed(ctx, url, conn); err != nil {
		return "", err
	}
	what := "Redis " + version + ", " + field(info, "redis_mode")
	if policy == "noeviction" {
		what += "; its maxmemory-policy is noeviction: when full, it rejects new links (allkeys-lru evicts instead)"
	}
	return what, nil
}

// allowed tries what every process has to do, in a namespace that none has. Users of a
// Cluster are each node's own: there it is tried under so many names that some lie on every node.
func allowed(ctx context.Context, url string, conn rueidis.Client) error {
	names := 1
	if sharded(conn) {
		names = clusterTries
	}
	for i := range names {
		c, err := New(Config{URL: url, Namespace: "check" + strconv.Itoa(i)})
		if err != nil {
			return err
		}
		missing, err := c.try(ctx, conn)
		if err = errors.Join(err, c.Close()); err != nil {
			return err
		}
		if len(missing) > 0 {
			return missing
		}
	}
	return nil
}

// clusterTries is how many names are tried on a Cluster: of three nodes one is missed by all
// channels in two of a million cases, and sooner found by keys.
const clusterTries = 32

// field returns a value of INFO.
func field(info, name string) string {
	_, rest, _ := strings.Cut("\n"+info, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

package redis

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"curt/internal/ratelimit"
)

//go:embed spend.lua
var spendSource string

// bucketSlack is how much longer than needed a bucket is kept, for clocks that are set.
const bucketSlack = time.Second

// answersPerCharge is how many numbers spend.lua returns for each charge.
const answersPerCharge = 4

// Limiter is a ratelimit.Store that many processes share. It counts by the server's clock,
// in microseconds: the time that callers name is not asked for, so that processes whose
// clocks differ share one bucket all the same. A bucket that the server forgets is full.
//
// Charges of one owner (what a bucket's name has before its last slash) are decided in one
// step. On a Cluster, where those of several owners may lie on several nodes, the later are
// decided after the earlier, which are given back when a later one is refused: too much is
// never allowed.
type Limiter struct {
	c *Client
	// Of tests, which bring their own time.
	theirClock bool
	slack      time.Duration
}

// Limiter returns the store of rate limits on this connection.
func (c *Client) Limiter() *Limiter {
	return &Limiter{c: c, slack: bucketSlack}
}

// Spend implements ratelimit.Store.
func (l *Limiter) Spend(ctx context.Context, now time.Time, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	for _, ch := range charges {
		if err := ch.Validate(); err != nil {
			return nil, err
		}
	}
	if len(charges) == 0 {
		return []ratelimit.Verdict{}, nil
	}
	keys := make([]string, len(charges))
	for i, ch := range charges {
		keys[i] = l.key(ch.Bucket)
	}
	var verdicts []ratelimit.Verdict
	err := l.c.guarded(ctx, countLimits, l.c.limits.spend, func(ctx context.Context, conn rueidis.Client) error {
		var err error
		if sharded(conn) && !oneOwner(keys) {
			verdicts, err = l.inTurn(ctx, conn, now, keys, charges)
		} else {
			verdicts, err = l.script(ctx, conn, now, keys, charges)
		}
		return err
	})
	return verdicts, wrap("spend charges", err)
}

// script decides charges whose keys lie on one node.
func (l *Limiter) script(ctx context.Context, conn rueidis.Client, now time.Time, keys []string, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	args := make([]string, 0, 2+3*len(charges))
	clock := ""
	if l.theirClock {
		clock = strconv.FormatInt(now.UnixMicro(), 10)
	}
	args = append(args, clock, strconv.FormatInt(l.slack.Milliseconds(), 10))
	for _, ch := range charges {
		interval := (ch.Limit.Interval() + time.Microsecond - 1) / time.Microsecond
		args = append(args, strconv.FormatInt(int64(interval), 10), strconv.Itoa(ch.Limit.Burst), strconv.Itoa(ch.Cost))
	}
	said, err := l.c.spend.Exec(ctx, conn, keys, args).AsIntSlice()
	if err != nil {
		return nil, err
	}
	if len(said) != answersPerCharge*len(charges) {
		return nil, fmt.Errorf("%d numbers for %d charges", len(said), len(charges))
	}
	verdicts := make([]ratelimit.Verdict, len(charges))
	for i, ch := range charges {
		n := said[answersPerCharge*i:]
		verdicts[i] = ratelimit.Verdict{
			Allowed: n[0] == 1, Limit: ch.Limit.Burst, Remaining: int(n[1]),
			RetryAfter: time.Duration(n[2]) * time.Microsecond, ResetAfter: time.Duration(n[3]) * time.Microsecond,
		}
	}
	return verdicts, nil
}

// inTurn decides charges of several owners one after the other. After a refusal the rest is
// only asked, and what was spent goes back.
func (l *Limiter) inTurn(ctx context.Context, conn rueidis.Client, now time.Time, keys []string, charges []ratelimit.Charge) ([]ratelimit.Verdict, error) {
	verdicts := make([]ratelimit.Verdict, len(charges))
	var spent []int
	refused := false
	for _, group := range byOwner(keys) {
		some := make([]ratelimit.Charge, len(group))
		names := make([]string, len(group))
		for i, at := range group {
			some[i], names[i] = charges[at], keys[at]
			if refused {
				some[i].Cost = 0
			}
		}
		said, err := l.script(ctx, conn, now, names, some)
		if err != nil {
			return nil, errors.Join(err, l.giveBack(ctx, conn, now, keys, charges, spent, verdicts))
		}
		for i, at := range group {
			verdicts[at] = said[i]
			refused = refused || !said[i].Allowed
		}
		if !refused {
			spent = append(spent, group...)
		}
	}
	if !refused {
		return verdicts, nil
	}
	return verdicts, l.giveBack(ctx, conn, now, keys, charges, spent, verdicts)
}

// giveBack undoes charges that were spent, and has their verdicts say so.
func (l *Limiter) giveBack(ctx context.Context, conn rueidis.Client, now time.Time, keys []string, charges []ratelimit.Charge, spent []int, verdicts []ratelimit.Verdict) error {
	for _, at := range spent {
		ch := charges[at]
		ch.Cost = -ch.Cost
		said, err := l.script(ctx, conn, now, keys[at:at+1], []ratelimit.Charge{ch})
		if err != nil {
			return err
		}
		verdicts[at].Remaining, verdicts[at].ResetAfter = said[0].Remaining, said[0].ResetAfter
	}
	return nil
}

// key names a bucket in Redis. What stands in braces decides the node: the owner.
func (l *Limiter) key(bucket string) string {
	owner := bucket
	if i := strings.LastIndexByte(bucket, '/'); i >= 0 {
		owner = bucket[:i]
	}
	return string(l.c.keys) + "r:{" + l.hash(owner) + "}" + l.hash(bucket)
}

// hash is 96 bits that tell nothing of a name without the key.
func (l *Limiter) hash(name string) string {
	mac := hmac.New(sha256.New, l.c.cfg.Key)
	mac.Write([]byte(name))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12])
}

func ownerOf(key string) string { return key[:strings.IndexByte(key, '}')] }

func oneOwner(keys []string) bool {
	for _, k := range keys {
		if ownerOf(k) != ownerOf(keys[0]) {
			return false
		}
	}
	return true
}

// byOwner returns the indexes of keys, those of one owner together, in the order of the
// first of each.
func byOwner(keys []string) [][]int {
	var groups [][]int
	place := map[string]int{}
	for i, k := range keys {
		at, known := place[ownerOf(k)]
		if !known {
			at = len(groups)
			place[ownerOf(k)], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

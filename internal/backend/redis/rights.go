package redis

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// right is something that every process does at the server, and that the ACL of its user has
// to let it do.
type right int

const (
	readLinks right = iota
	writeLinks
	countLimits
	tellChanges
	hearChanges
	filterCodes
	useKeys // of any of these
	useChannel
)

// what says in words what cannot be done without a right, and rule what ACL SETUSER calls it.
func (r right) what() string {
	return [...]string{"read links", "write links by a script", "count limits by a script", "publish changes", "subscribe to changes", "filter codes by a script", "use keys that begin with curt:", "use channels that begin with curt:"}[r]
}

func (r right) rule(sharded bool) string {
	rules := [...]string{"+get", "+eval +evalsha +getrange +set", "+eval +evalsha +time +get +set +del", "+publish", "+subscribe", "+eval +getbit +setbit +strlen +pexpire", "~curt:*", "&curt:*"}
	if sharded {
		rules[tellChanges], rules[hearChanges] = "+spublish", "+ssubscribe"
	}
	return rules[r]
}

// RightError is that Redis refuses its user a right.
type RightError struct {
	right   right
	sharded bool
	err     error // what Redis said
}

// Error implements error.
func (e *RightError) Error() string { return e.public() + ": " + e.err.Error() }

// Unwrap returns what Redis said.
func (e *RightError) Unwrap() error { return e.err }

func (e *RightError) public() string {
	return "the user lacks the right to " + e.right.what() + " (ACL: " + e.right.rule(e.sharded) + ")"
}

// RightsError is all that Redis refuses its user.
type RightsError []*RightError

// Error implements error, in one line.
func (all RightsError) Error() string { return all.join((*RightError).Error) }

// PublicMessage says what is missing and which rules of an ACL give it.
func (all RightsError) PublicMessage() string { return all.join((*RightError).public) }

func (all RightsError) join(say func(*RightError) string) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = say(e)
	}
	return strings.Join(texts, "; ")
}

func (all RightsError) sort() {
	slices.SortFunc(all, func(a, b *RightError) int { return cmp.Compare(a.right, b.right) })
}

// denied returns a RightError where that is what an error of Redis means, else nil. A key or a
// channel that is refused is one right, whatever was to be done with it. What a script
// may not do has no code of its own: it is told by words, of Redis 7.0 and from 7.2 on.
func denied(err error, r right, sharded bool) *RightError {
	said, ok := rueidis.IsRedisErr(err)
	if !ok {
		return nil
	}
	text := said.Error()
	if !strings.HasPrefix(text, "NOPERM") && !strings.Contains(text, "ACL failure in script") && !strings.Contains(text, "The user executing the script") {
		return nil
	}
	switch {
	case strings.Contains(text, " channel"):
		r = useChannel
	case strings.Contains(text, " key"):
		r = useKeys
	}
	return &RightError{r, sharded, said}
}

// rightsEvery is how often it is tried, while a right is missing, whether it still is.
const rightsEvery = 5 * time.Second

// rights are those that Redis refused lately. It is safe for many goroutines.
type rights struct {
	mu      sync.Mutex
	missing map[right]*lack // guarded by mu
	look    chan struct{}   // has an element when somebody should try all of them
	every   time.Duration   // rightsEvery; set once, before Run
}

// lack is a right that is missing.
type lack struct {
	err  *RightError
	last time.Time // that it was refused
	told bool
}

func newRights() *rights {
	return &rights{missing: map[right]*lack{}, look: make(chan struct{}, 1), every: rightsEvery}
}

// refused notes that a right was refused at now. Who calls it has met an error already, and
// does not wait.
func (r *rights) refused(e *RightError, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.missing[e.right]; known != nil {
		known.last = now
		return
	}
	r.missing[e.right] = &lack{err: e, last: now}
	r.wake()
}

// wake has somebody try all rights soon.
func (r *rights) wake() {
	select {
	case r.look <- struct{}{}:
	default:
	}
}

// forget forgets what was refused before since only. news are those that nobody was told of,
// and mended reports that one was missing and none is any more.
func (r *rights) forget(since time.Time) (news RightsError, mended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.missing)
	for name, l := range r.missing {
		if l.last.Before(since) {
			delete(r.missing, name)
		} else if !l.told {
			l.told = true
			news = append(news, l.err)
		}
	}
	news.sort()
	return news, before > 0 && len(r.missing) == 0
}

// all returns what is missing; nil = nothing is.
func (r *rights) all() (all RightsError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.missing {
		all = append(all, l.err)
	}
	all.sort()
	return all
}

// Refused returns nil while Redis lets its user do all that a process does there; else a
// RightsError. It does no I/O: Run tries all of it when it has connected, and again when
// anything was refused.
func (c *Client) Refused() error {
	if all := c.rights.all(); len(all) > 0 {
		return all
	}
	return nil
}

// watchRights finds out which rights are missing, and has the log say each once, until ctx ends.
func (c *Client) watchRights(ctx context.Context) {
	var last time.Time // when all were tried before
	for {
		var again <-chan time.Time
		if c.Refused() != nil {
			again = time.After(c.rights.every)
		}
		select {
		case <-ctx.Done():
			return
		case <-c.rights.look:
		case <-again:
		}
		conn, err := c.client()
		if err != nil {
			continue
		}
		began := time.Now()
		missing, err := c.try(ctx, conn)
		for _, e := range missing {
			c.rights.refused(e, time.Now())
		}
		if err != nil {
			continue // it does not answer: nothing is known
		}
		// On a Cluster another node may refuse what this try did not ask it, and did so since the
		// last one.
		news, mended := c.rights.forget(last)
		last = began
		for _, e := range news {
			c.cfg.Log.WarnContext(ctx, "redis permission missing", slog.String("missing", e.right.what()), slog.String("acl", e.right.rule(e.sharded)), slog.Any("err", e.err))
		}
		if mended {
			c.cfg.Log.InfoContext(ctx, "redis permissions restored")
		}
	}
}

// try does once what every process does, on names of its own, and leaves nothing behind. err
// is that it could not find out.
func (c *Client) try(ctx context.Context, conn rueidis.Client) (missing RightsError, err error) {
	ctx, cancel := context.WithTimeout(ctx, stalled)
	defer cancel()
	for r, step := range []func(context.Context, rueidis.Client) error{
		readLinks: c.tryRead, writeLinks: c.tryWrite, countLimits: c.tryLimits, tellChanges: c.tryTelling, hearChanges: c.tryHearing,
		filterCodes: func(ctx context.Context, conn rueidis.Client) error { return tryPart(ctx, c, conn) },
	} {
		err := step(ctx, conn)
		if err == nil {
			continue
		}
		e := denied(err, right(r), sharded(conn))
		if e == nil {
			return missing, wrap(right(r).what(), err)
		}
		if !slices.ContainsFunc(missing, func(other *RightError) bool { return other.right == e.right }) {
			missing = append(missing, e)
		}
	}
	return missing, nil
}

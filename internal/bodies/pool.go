package bodies

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pool is bytes that are lent, first come, first served. What a holder may have at the most
// is the same for all; a holder that has less may ask for more and waits with what it has.
type pool struct {
	size int64
	most int64 // of one holder
	stay bool  // a holder asks once: who waits holds nothing

	waits atomic.Int64 // how many wait; read by metrics
	taken atomic.Int64 // = size - free, likewise

	mu      sync.Mutex
	free    int64           // guarded by mu
	held    map[*loan]int64 // guarded by mu
	waiting []*loan         // guarded by mu, in the order of their arrival
}

// loan is what one holder has of a pool. Its owner is one goroutine.
type loan struct {
	pool  *pool
	given chan struct{} // closed when it has what it waits for; made for each wait
	stop  func()        // ends the reading of the body; called with pool.mu held, once; nil = nobody can

	// guarded by pool.mu
	wants   int64         // in all, while it waits
	since   time.Time     // since when the client is waited for; zero = it is not
	waited  time.Duration // how long it was waited for since the last step, before since
	stopped bool
}

// reading says that the client is waited for from now on.
func (l *loan) reading() {
	l.pool.mu.Lock()
	l.since = time.Now()
	l.pool.mu.Unlock()
}

// arrived says that the client is not waited for any more, and whether the reading was stopped.
func (l *loan) arrived() (stopped bool) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.waited += time.Since(l.since)
	l.since = time.Time{}
	return l.stopped
}

func newPool(size, most int64) *pool {
	return &pool{size: size, most: most, free: size, held: map[*loan]int64{}}
}

// grow makes the loan n in all, or fails with ErrFull after patience, or with ctx's error.
func (l *loan) grow(ctx context.Context, n int64, patience time.Duration) error {
	p := l.pool
	p.mu.Lock()
	// Who comes later does not pass by those who wait, or large loans would never be given.
	if len(p.waiting) == 0 && p.fits(l, n) {
		p.give(l, n)
		p.mu.Unlock()
		return nil
	}
	l.wants, l.given = n, make(chan struct{})
	p.waiting = append(p.waiting, l)
	p.waits.Add(1)
	p.pass()
	p.mu.Unlock()
	defer p.waits.Add(-1)
	late := time.NewTimer(patience)
	defer late.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for began := time.Now(); ; {
		err := ErrFull
		select {
		case <-l.given:
			return nil
		case now := <-look.C:
			if now.Sub(began) >= Slow {
				p.stopSlow(now)
			}
			continue
		case <-late.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if p.leave(l) {
			return err
		}
		return nil // it was given at the same moment
	}
}

// stopSlow ends as many of those whose clients are slow as make room for any that waits, the
// slowest first.
func (p *pool) stopSlow(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	type late struct {
		*loan
		by time.Duration
	}
	var slow []late
	room := p.free
	for l, held := range p.held {
		if l.stopped {
			room += held
		} else if by := l.waited + now.Sub(l.since); l.stop != nil && !l.since.IsZero() && by >= Slow {
			slow = append(slow, late{l, by})
		}
	}
	slices.SortFunc(slow, func(a, b late) int { return cmp.Compare(b.by, a.by) })
	for _, l := range slow {
		if room >= p.most {
			return
		}
		room += p.held[l.loan]
		l.stopped = true
		l.stop()
	}
}

// leave takes l from those who wait; false = it waits no more.
func (p *pool) leave(l *loan) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.waiting {
		if w == l {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.pass()
			return true
		}
	}
	return false
}

// end gives everything back.
func (l *loan) end() {
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += p.held[l]
	p.taken.Store(p.size - p.free)
	delete(p.held, l)
	p.pass()
}

// pass gives to those who wait what fits, the first first. One that has begun may pass by
// those that have not: it ends the sooner. The lock is held.
func (p *pool) pass() {
	left := p.waiting[:0]
	blocked := false
	for _, l := range p.waiting {
		_, began := p.held[l]
		if (blocked && !began) || !p.fits(l, l.wants) {
			blocked = true
			left = append(left, l)
			continue
		}
		p.give(l, l.wants)
		close(l.given)
	}
	clear(p.waiting[len(left):])
	p.waiting = left
}

func (p *pool) give(l *loan, n int64) {
	p.free -= n - p.held[l]
	p.held[l] = n
	l.waited = 0
	p.taken.Store(p.size - p.free)
}

// fits reports whether l may have n in all: it is there, and behind it some holder could have
// all that one may have. When that one ends, what it gives back is at least that much, so that
// all others can, one after the other (the banker's algorithm, for one resource and equal
// claims). The lock is held.
func (p *pool) fits(l *loan, n int64) bool {
	left := p.free - (n - p.held[l])
	if left < 0 {
		return false
	}
	if p.stay || left >= p.most-n {
		return true
	}
	for other, held := range p.held {
		if other != l && left >= p.most-held {
			return true
		}
	}
	return false
}

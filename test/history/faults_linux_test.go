package history_test

import (
	"fmt"
	"syscall"
	"time"

	"curt/test/internal/curttest"
)

// lasts is how long a fault does, which the long form stretches.
func lasts(short time.Duration) time.Duration {
	if curttest.Long() {
		return 3 * short
	}
	return short
}

// round is every fault that servers and databases survive. After each the clients go on
// until every server has taken some writes.
func (f *fleet) round(c *crowd) {
	f.t.Helper()
	for _, step := range f.steps() {
		step()
		c.progress(10)
	}
}

// steps are the faults in their order.
func (f *fleet) steps() []func() {
	if f.tables != nil {
		return f.tableFaults()
	}
	steps := []func(){
		func() { f.clock(1, time.Hour) },
		f.killed,
		func() { f.clock(0, 20*time.Hour) },
		f.slept,
		func() { f.clock(1, -time.Hour) },
		f.lagged,
		func() { f.clock(2, -2*time.Hour) },
		f.hung,
		func() { f.clock(0, 0) },
	}
	if f.redis != nil {
		steps = append(steps, f.busStalled, f.busDied)
	}
	return steps
}

// clock sets the clock of one server.
func (f *fleet) clock(server int, offset time.Duration) {
	f.t.Helper()
	f.fault(fmt.Sprintf("the clock of server %d is set to %s from the others'", server, offset), servers, 0, func() {
		f.server(server).SetClock(f.t, offset)
	})
}

// killed: a server dies and starts again on what it left. What it changed last, others may
// hear from the log alone.
func (f *fleet) killed() {
	f.t.Helper()
	f.shake("server 2 is killed and starts again", func() {
		f.server(2).Kill()
		f.start(2, f.server(2).Data)
	})
}

// slept: a server stands still, and is asked all the while.
func (f *fleet) slept() {
	f.t.Helper()
	f.shake("server 1 sleeps, and", func() {
		f.fault("server 1 sleeps", 1, woken, func() {
			f.asleep(1, func() { time.Sleep(lasts(3 * time.Second)) })
		})
	})
}

// lagged: the replica replays nothing for longer than it may be behind.
func (f *fleet) lagged() {
	f.t.Helper()
	f.fault("the replica is behind", servers, 0, func() {
		f.standby.Exec(f.t, "SELECT pg_wal_replay_pause()")
		time.Sleep(lasts(2500 * time.Millisecond))
		f.standby.Exec(f.t, "SELECT pg_wal_replay_resume()")
	})
}

// hung: the primary takes connections and answers nobody.
func (f *fleet) hung() {
	f.t.Helper()
	f.fault("the primary stands still", -1, heard, func() {
		f.primary.Stop(f.t, func() { time.Sleep(lasts(3 * time.Second)) })
		f.primary.Exec(f.t, "SELECT 1") // it answers again
	})
}

// died: the primary is lost, and the standby takes over.
func (f *fleet) died() {
	f.t.Helper()
	f.fault("the primary dies, and the standby is promoted", -1, heard, func() {
		f.primary.Kill(f.t)
		time.Sleep(lasts(time.Second))
		f.standby.Promote(f.t)
	})
}

// busStalled: Redis takes connections and answers nobody, for longer than it takes to
// notice.
func (f *fleet) busStalled() {
	f.t.Helper()
	f.shake("Redis stands still", func() {
		f.signal(f.redis.Pid, syscall.SIGSTOP)
		time.Sleep(lasts(3 * time.Second))
		f.signal(f.redis.Pid, syscall.SIGCONT)
	})
}

// busDied: Redis is killed, and another begins, which knows nothing.
func (f *fleet) busDied() {
	f.t.Helper()
	f.shake("Redis dies, and comes back empty", func() {
		f.signal(f.redis.Pid, syscall.SIGKILL)
		time.Sleep(lasts(500 * time.Millisecond))
		f.redis.Again(f.t)
	})
}

// signal sends a signal to a process.
func (f *fleet) signal(pid int, s syscall.Signal) {
	f.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		f.t.Fatal(err)
	}
}

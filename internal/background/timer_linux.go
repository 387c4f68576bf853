package background

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// timers wait in the network poller (timerfd_create(2)): when one fires, Go has looked at the
// network, and everything that was ready there is ahead in the run queue. Sleeps do not give that,
// and the shortest takes a millisecond on an idle processor.
type timers struct {
	mu   sync.Mutex
	free []*os.File // guarded by mu; not in use
}

// wait returns when d has passed. Without a timer, for lack of descriptors, it sleeps.
func (c *timers) wait(d time.Duration) {
	f, err := c.take()
	if err == nil {
		err = waitFor(f, d)
		c.mu.Lock()
		c.free = append(c.free, f)
		c.mu.Unlock()
	}
	if err != nil {
		time.Sleep(d)
	}
}

func (c *timers) take() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		f := c.free[n-1]
		c.free = c.free[:n-1]
		return f, nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return os.NewFile(uintptr(fd), "timerfd"), nil
}

func waitFor(f *os.File, d time.Duration) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	var count [8]byte
	_, err = f.Read(count[:])
	return err
}

// close closes the timers.
func (c *timers) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, f := range c.free {
		errs = append(errs, f.Close())
	}
	c.free = nil
	return errors.Join(errs...)
}

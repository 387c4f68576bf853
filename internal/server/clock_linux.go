package server

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clocks are timers that are waited for as for the network (timerfd_create(2)): whoever has
// waited knows that Go has looked at it, and all that was ready there is ahead in the line.
// Sleeps tell nothing of it, and the shortest would be a millisecond for an idle processor.
type clocks struct {
	mu   sync.Mutex
	free []*os.File // guarded by mu; those nobody waits for
}

// wait returns when d has passed. Without a clock, as there are no descriptors, it sleeps.
func (c *clocks) wait(d time.Duration) {
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

func (c *clocks) take() (*os.File, error) {
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

// close gives the clocks back.
func (c *clocks) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, f := range c.free {
		errs = append(errs, f.Close())
	}
	c.free = nil
	return errors.Join(errs...)
}

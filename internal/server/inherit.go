package server

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"curt/internal/config"
)

// firstInherited is the first descriptor that a supervisor hands down.
const firstInherited = 3

// inherited are listeners that a supervisor opened (sd_listen_fds(3)), in the order
// CURT_LISTEN, CURT_API_LISTEN and CURT_ADMIN_LISTEN, of which those that are not
// set are left out. Connections wait in them while this process is restarted.
type inherited []net.Listener

// inherit takes the listeners of this process; a child's environment does not name
// them again.
func inherit() (inherited, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("take the listeners: %w", err)
		}
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 64 {
		return nil, &config.Error{Setting: "LISTEN_FDS", Value: count, Want: "want the number of listeners"}
	}
	var ls inherited
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		f := os.NewFile(uintptr(fd), "listener "+strconv.Itoa(fd))
		l, err := net.FileListener(f)
		if err != nil {
			return nil, &config.Error{Setting: "LISTEN_FDS", Value: count, Want: fmt.Sprintf("descriptor %d is no listener: %v", fd, err)}
		}
		if err := f.Close(); err != nil { // l is a copy
			return nil, fmt.Errorf("take the listeners: %w", err)
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// next returns the next listener, or nil.
func (ls *inherited) next() net.Listener {
	if len(*ls) == 0 {
		return nil
	}
	l := (*ls)[0]
	*ls = (*ls)[1:]
	return l
}

package curttest

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clockGettime is what SetClock puts in the place of the kernel's clock_gettime: the system
// call, and for CLOCK_REALTIME, which is 0, the seconds behind it on top. The monotonic
// clock goes on as it did, as it does when somebody sets a machine's clock.
//
// A static Go binary asks the kernel for the time by code that the kernel maps into each
// process, the vDSO. A library that is loaded first does not come between, a time namespace
// shifts every clock but this one, and a tracer would have to stop the process for every
// look at the clock.
func clockGettime(seconds int64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, 228: clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 0x0a, // jnz to the ret
		0x48, 0x8b, 0x0d, 6, 0, 0, 0, // mov rcx, the seconds
		0x48, 0x01, 0x0e, // add [rsi], rcx
		0xc3,       // ret
		0x90, 0x90, // to the next multiple of eight
	}, uint64(seconds))
}

// SetClock sets the wall clock that this server alone sees to so much, in whole seconds,
// before or behind that of the machine, and fails the test unless the server then shows it.
// Where the kernel lets nobody do that, the test ends by Need.
func (s *Server) SetClock(t testing.TB, offset time.Duration) {
	t.Helper()
	switch err := s.setClock(t.Context(), offset); {
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EIO):
		Need(t, "the right to write to the memory of a process that it began: "+err.Error())
	case err != nil:
		t.Fatalf("set the clock of curt (pid %d): %v", s.PID, err)
	}
}

func (s *Server) setClock(ctx context.Context, offset time.Duration) error {
	begin, size, err := findClock(s.PID)
	if err != nil {
		return err
	}
	code := clockGettime(int64(offset / time.Second))
	if size < uint64(len(code)) {
		return fmt.Errorf("clock_gettime has %d bytes, %d are needed", size, len(code))
	}
	if err := rewrite(s.PID, begin, size, code); err != nil {
		return err
	}
	asked := time.Now()
	shown, err := s.clock(ctx)
	if err != nil {
		return err
	}
	// The answer may take long, but shows a second in between, which may be some seconds old.
	if earliest, latest := asked.Add(offset-10*time.Second), time.Now().Add(offset+time.Second); shown.Before(earliest) || shown.After(latest) {
		return fmt.Errorf("the server shows %s, want %s to %s", shown, earliest, latest)
	}
	return nil
}

// clock returns the time that the server puts on its answers.
func (s *Server) clock(ctx context.Context) (time.Time, error) {
	c, err := Dial(ctx, s.Admin)
	if err != nil {
		return time.Time{}, err
	}
	defer c.Close()
	a, err := c.Do("GET", "/healthz", nil, "")
	if err != nil {
		return time.Time{}, err
	}
	text, _ := a.Get("Date")
	return http.ParseTime(text)
}

// findClock returns where in the memory of a process clock_gettime lies, and its size.
func findClock(pid int) (begin, size uint64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	var from, to uint64
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				return 0, 0, fmt.Errorf("read %q: %w", line, err)
			}
		}
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = memory.Close() }()
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, int64(from)); err != nil {
		return 0, 0, fmt.Errorf("read the vDSO: %w", err)
	}
	vdso, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, fmt.Errorf("read the vDSO: %w", err)
	}
	symbols, err := vdso.DynamicSymbols()
	if err != nil {
		return 0, 0, fmt.Errorf("read the vDSO: %w", err)
	}
	for _, one := range symbols {
		if one.Name == "__vdso_clock_gettime" {
			return from + one.Value, one.Size, nil
		}
	}
	return 0, 0, errors.New("the vDSO has no clock_gettime")
}

// rewrite puts code at the beginning of a function of a process, which stands still
// meanwhile and is not inside it.
func rewrite(pid int, begin, size uint64, code []byte) error {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = memory.Close() }()
	for range 1000 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		outside, err := standsOutside(pid, begin, begin+size)
		if outside {
			_, err = memory.WriteAt(code, int64(begin))
		}
		if err := errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); outside || err != nil {
			return err
		}
	}
	return errors.New("it never stood still outside of clock_gettime")
}

// standsOutside waits until every thread of a process has been stopped, and reports whether
// none of them is between two addresses.
func standsOutside(pid int, begin, end uint64) (bool, error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		at, err := whereItStands(fmt.Sprintf("/proc/%d/task/%s/", pid, thread.Name()))
		if err != nil {
			return false, err
		}
		if begin <= at && at < end {
			return false, nil
		}
	}
	return true, nil
}

// whereItStands waits until a thread, by its folder, has been stopped, and returns the
// address where: the last field of its file "syscall". 0 = it has ended.
func whereItStands(folder string) (uint64, error) {
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Microsecond) {
		stat, err := os.ReadFile(folder + "stat")
		text, err2 := os.ReadFile(folder + "syscall")
		switch err := errors.Join(err, err2); {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH):
			return 0, nil
		case err != nil:
			return 0, err
		}
		_, state, _ := bytes.Cut(stat, []byte(") "))
		if fields := strings.Fields(string(text)); bytes.HasPrefix(state, []byte("T")) && len(fields) > 1 {
			return strconv.ParseUint(fields[len(fields)-1], 0, 64)
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("%s: not stopped, %q", folder, text)
		}
	}
}

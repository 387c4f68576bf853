package curttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ownMountsEnv marks the re-executed process that has a mount namespace of its own.
const ownMountsEnv = "CURT_TEST_OWN_MOUNTS"

// MainWithMounts is Main for packages that mount file systems. As root, the tests
// run in a child process with its own mount namespace: whatever way they end, the
// kernel takes their mounts and loop devices away.
func MainWithMounts(m *testing.M) int {
	if os.Geteuid() != 0 || os.Getenv(ownMountsEnv) != "" {
		return Main(m)
	}
	runtime.LockOSThread() // Pdeathsig follows the thread that forked
	defer runtime.UnlockOSThread()
	cmd := exec.Command(os.Args[0], os.Args[1:]...) //nolint:gosec,noctx // ourselves, for as long as we live
	cmd.Env = append(os.Environ(), ownMountsEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return Main(m) // root without its rights, as in most containers; NewDisk says what is missing
	}
	_ = cmd.Wait() // the exit code is the result
	return cmd.ProcessState.ExitCode()
}

// Disk is an ext4 file system in a file of its own, mounted on a folder.
type Disk struct {
	Path  string // where it is mounted
	image string
}

// NewDisk makes and mounts a file system of the given size. It needs root, loop
// devices and mkfs.ext4; without them the test ends by Need.
func NewDisk(t testing.TB, mebibytes int64) *Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		Need(t, "root, to mount a file system of its own")
	}
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		Need(t, "mkfs.ext4 (apt-get install e2fsprogs)")
	}
	dir := t.TempDir()
	d := &Disk{Path: filepath.Join(dir, "mount"), image: filepath.Join(dir, "image")}
	if err := errors.Join(os.Mkdir(d.Path, 0o750), os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, mebibytes<<20)); err != nil {
		t.Fatal(err)
	}
	// No lazy initialisation: a kernel thread that still writes tables would be load
	// that no test asked for. No reserved blocks: root must find the disk full too.
	run(t, mkfs, "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.image)
	if err := d.tryMount(t); err != nil {
		Need(t, fmt.Sprintf("loop devices and ext4 (modprobe loop ext4): %v", err))
	}
	t.Cleanup(func() { _ = unix.Unmount(d.Path, unix.MNT_DETACH) })
	return d
}

func (d *Disk) tryMount(t testing.TB) error {
	cmd := exec.CommandContext(t.Context(), "mount", "-o", "loop", d.image, d.Path) //nolint:gosec // our own paths
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// extShutdown is EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN of the kernel's headers,
// _IOR('X', 125, __u32); noLogFlush is the flag that also drops the journal's
// unwritten part.
const (
	extShutdown = 0x8004587d
	noLogFlush  = 2
)

// CutPower drops everything that is not on the disk yet: pages that were written
// but not synced, and the file system's journal in memory. From then on every
// access fails.
func (d *Disk) CutPower(t testing.TB) {
	t.Helper()
	f, err := os.Open(d.Path)
	if err != nil {
		t.Fatalf("open the mount: %v", err)
	}
	defer func() { _ = f.Close() }() // the file system is gone, so is its error
	if err := unix.IoctlSetPointerInt(int(f.Fd()), extShutdown, noLogFlush); err != nil {
		Need(t, fmt.Sprintf("a kernel whose ext4 can be shut down (EXT4_IOC_SHUTDOWN): %v", err))
	}
}

// TurnReadOnly has the kernel find a fault in the file system, whose answer is that
// nobody writes to it any more (errors=remount-ro, as most installations have it).
func (d *Disk) TurnReadOnly(t testing.TB) {
	t.Helper()
	run(t, "mount", "-o", "remount,errors=remount-ro", d.Path)
	var s unix.Stat_t
	if err := unix.Stat(d.Path, &s); err != nil {
		t.Fatal(err)
	}
	fault := fmt.Sprintf("/sys/fs/ext4/loop%d/trigger_fs_error", unix.Minor(s.Dev))
	if err := os.WriteFile(fault, []byte("1"), 0o200); err != nil {
		Need(t, fmt.Sprintf("a kernel whose ext4 can be told of a fault: %v", err))
	}
}

// Remount brings the file system back as after a power cut: unmounted, its journal
// replayed, mounted again. No process may use it.
func (d *Disk) Remount(t testing.TB) {
	t.Helper()
	// The kernel may still be closing the files of a process that was just killed.
	deadline := time.Now().Add(3 * time.Minute)
	for {
		err := unix.Unmount(d.Path, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			t.Fatalf("unmount %s: %v", d.Path, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := d.tryMount(t); err != nil {
		t.Fatalf("mount again: %v", err)
	}
}

// Fill writes a file until the disk has no room left, and returns what removes it.
func (d *Disk) Fill(t testing.TB) (free func()) {
	t.Helper()
	name := filepath.Join(d.Path, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size >= 512; {
		if _, err = f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	if err := f.Sync(); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("sync the ballast: %v", err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(f.Close(), os.Remove(name)); err != nil {
			t.Fatalf("free the disk: %v", err)
		}
	}
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

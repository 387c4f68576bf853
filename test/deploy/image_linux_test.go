package deploy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// stage is an image under construction: a folder, and what stands in the file beside
// the files. The base image is this machine, whose files and programs it may read.
type stage struct {
	root    string
	base    string
	workdir string
	env     []string
	user    string
	entry   []string
	command []string
	health  []string
	volumes []string
}

// build runs the steps of a Dockerfile and returns the last stage. It knows what ours
// uses; any other step fails the test.
func build(t *testing.T, file, folder string) stage {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stages := map[string]*stage{}
	var s *stage
	joined := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(text), "")
	for line := range strings.Lines(joined) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		step, rest, _ := strings.Cut(line, " ")
		if step == "FROM" {
			words := strings.Fields(rest)
			s = &stage{root: t.TempDir(), base: words[0], workdir: "/"}
			if len(words) == 3 {
				stages[words[2]] = s
			}
			continue
		}
		if err := s.step(step, rest, folder, stages); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return *s
}

func (s *stage) step(step, rest, folder string, stages map[string]*stage) error {
	switch step {
	case "WORKDIR":
		s.workdir = rest
		return os.MkdirAll(filepath.Join(s.root, rest), 0o755)
	case "ARG", "ENV":
		s.env = append(s.env, strings.Fields(rest)...)
	case "RUN":
		return s.run(rest)
	case "COPY":
		return s.copy(rest, folder, stages)
	case "USER":
		s.user = rest
	case "VOLUME":
		s.volumes = append(s.volumes, strings.Fields(rest)...)
	case "EXPOSE", "STOPSIGNAL":
	case "HEALTHCHECK":
		_, command, _ := strings.Cut(rest, "CMD ")
		return json.Unmarshal([]byte(command), &s.health)
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &s.entry)
	case "CMD":
		return json.Unmarshal([]byte(rest), &s.command)
	default:
		return fmt.Errorf("the test does not know %s", step)
	}
	return nil
}

// run executes a command in the stage's working folder. Its paths are relative, so that
// it needs no root of its own.
func (s *stage) run(command string) error {
	if s.base == "scratch" {
		return fmt.Errorf("an empty image has no shell")
	}
	cmd := exec.Command("sh", "-ec", command)
	cmd.Dir = filepath.Join(s.root, s.workdir)
	cmd.Env = append(os.Environ(), s.env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// copy puts files of the build context, or of another stage, into this one.
func (s *stage) copy(rest, folder string, stages map[string]*stage) error {
	words := strings.Fields(rest)
	from, owner, ignored := folder, -1, ignoredBy(folder)
	for strings.HasPrefix(words[0], "--") {
		name, value, _ := strings.Cut(words[0], "=")
		switch name {
		case "--from":
			from, ignored = stages[value].root, nil
		case "--chown":
			id, _, _ := strings.Cut(value, ":")
			var err error
			if owner, err = strconv.Atoi(id); err != nil {
				return err
			}
		}
		words = words[1:]
	}
	to := words[len(words)-1]
	for _, word := range words[:len(words)-1] {
		source := filepath.Join(from, word)
		if _, err := os.Stat(source); err != nil && filepath.IsAbs(word) {
			source = word // of the base image
		}
		target := filepath.Join(s.root, s.workdir, to)
		if filepath.IsAbs(to) {
			target = filepath.Join(s.root, to)
		}
		info, err := os.Stat(source)
		if err != nil {
			return err
		}
		if !info.IsDir() && strings.HasSuffix(to, "/") {
			target = filepath.Join(target, filepath.Base(source))
		}
		if err := copyAll(folder, source, target, owner, ignored); err != nil {
			return err
		}
	}
	return nil
}

// copyAll copies a file or a folder; ignored is asked with paths below the context.
func copyAll(context, source, target string, owner int, ignored func(string) bool) error {
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		if ignored != nil && rel != "." {
			below, err := filepath.Rel(context, path)
			if err != nil {
				return err
			}
			if ignored(below) && d.IsDir() {
				return fs.SkipDir
			} else if ignored(below) {
				return nil
			}
		}
		to := filepath.Join(target, rel)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			err = os.MkdirAll(to, info.Mode().Perm())
		} else {
			err = copyFile(path, to, info.Mode().Perm())
		}
		if err == nil && owner >= 0 && os.Geteuid() == 0 {
			err = os.Chown(to, owner, owner)
		}
		return err
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// ignoredBy reads .dockerignore: the last line that matches a path decides, "!" keeps
// it, and "**/" stands for any folder.
func ignoredBy(folder string) func(string) bool {
	text, _ := os.ReadFile(filepath.Join(folder, ".dockerignore")) // none: nothing is ignored
	return func(path string) (ignored bool) {
		for line := range strings.Lines(string(text)) {
			pattern, kept := strings.CutPrefix(strings.TrimSpace(line), "!")
			if pattern != "" && !strings.HasPrefix(pattern, "#") && covers(pattern, path) {
				ignored = !kept
			}
		}
		return ignored
	}
}

// covers reports whether the pattern names the path or a folder above it.
func covers(pattern, path string) bool {
	for ; path != "."; path = filepath.Dir(path) {
		name, at := path, pattern
		if anywhere, ok := strings.CutPrefix(pattern, "**/"); ok {
			name, at = filepath.Base(path), anywhere
		}
		if ok, _ := filepath.Match(at, name); ok {
			return true
		}
	}
	return false
}

// TestImage runs the steps of the Dockerfile in folders of their own, measures what the
// image would hold, and runs it as its user with nothing but those files.
func TestImage(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		curttest.Need(t, "root, to change the root of a process")
	}
	image := build(t, root+"/deploy/Dockerfile", root)
	if image.base != "scratch" || !slices.Equal(image.entry, []string{"/bin/curt"}) || !slices.Equal(image.volumes, []string{"/data"}) {
		t.Errorf("the last stage is %+v", image)
	}
	checkSize(t, image.root)
	// The temporary folder is root's alone.
	for dir := image.root; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	admin := curttest.FreeAddr(t)
	env := append(slices.Clone(image.env), "CURT_LISTEN="+curttest.FreeAddr(t), "CURT_ADMIN_LISTEN="+admin)
	server := image.process(t, env, append(image.entry, image.command...)...)
	var said strings.Builder
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			t.Errorf("the image ended with %v:\n%s", err, said.String())
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, err := image.process(t, env, image.health...).CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the health check says %v: %s", err, text)
		}
	}
	// Another port: nobody is there, and the check says so.
	var exit *exec.ExitError
	text, err := image.process(t, append(env, "CURT_ADMIN_LISTEN="+curttest.FreeAddr(t)), image.health...).CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() == 0 || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the health check of nobody says %v: %s", err, text)
	}
	if metrics(t, admin)["curt_ready"] != 1 {
		t.Error("no metrics")
	}
	checkOwner(t, filepath.Join(image.root, "data"), 65532)
}

// process is a command of the image as its user, with its files only.
func (s *stage) process(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	uid, _, _ := strings.Cut(s.user, ":")
	id, err := strconv.Atoi(uid)
	if err != nil || id == 0 {
		t.Fatalf("the image runs as %q", s.user)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: s.root, Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	return cmd
}

func checkSize(t *testing.T, image string) {
	t.Helper()
	var sum int64
	err := filepath.WalkDir(image, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum += info.Size()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(image, "bin/curt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("binary %.1f MB, image %.1f MB", float64(info.Size())/1e6, float64(sum)/1e6)
	if info.Size() > maxBinary || sum > maxImage {
		t.Errorf("binary %d bytes, image %d: more than %d and %d", info.Size(), sum, maxBinary, maxImage)
	}
}

func checkOwner(t *testing.T, folder string, id uint32) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) < 4 {
		t.Fatalf("the volume has %v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != id || info.Mode().Perm()&0o077 != 0 && !e.IsDir() {
			t.Errorf("%s belongs to %d with mode %s", e.Name(), owner, info.Mode())
		}
	}
}

package deploy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// releaseEnv asks for what make release-check proves.
const releaseEnv = "CURT_TEST_RELEASE"

// targets are the systems and machines of a release.
func targets() []string { return []string{"linux_amd64", "linux_arm64", "darwin_arm64"} }

// TestRelease has goreleaser judge .goreleaser.yaml and make a release by it that is
// published nowhere: an archive and a bill of materials for each target, and the sums of
// all of them. Each binary is within its bound and needs no library.
func TestRelease(t *testing.T) {
	if os.Getenv(releaseEnv) == "" {
		t.Skip("make release-check does this")
	}
	program := tool(t, "goreleaser", "make release-check")
	t.Setenv("PATH", filepath.Dir(tool(t, "syft", "make release-check"))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	// Where a release goes is the remote of whoever makes it, which a checkout may lack.
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "remote.origin.url")
	t.Setenv("GIT_CONFIG_VALUE_0", "https://github.com/example/curt.git")
	output(t, root, program, "check")
	t.Log(output(t, root, program, "release", "--snapshot", "--clean"))
	made := filepath.Join(root, "bin", "dist")
	want := append(strings.Fields(output(t, root, "git", "ls-files", "LICENSE", ":(glob)*.md", "docs", "deploy")), "curt")
	slices.Sort(want)
	var released []string
	for _, target := range targets() {
		archive := single(t, made, "curt_*_"+target+".tar.gz")
		bill := single(t, made, "curt_*_"+target+".sbom.json")
		released = append(released, filepath.Base(archive), filepath.Base(bill))
		files := unpack(t, archive)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
			t.Errorf("%s holds other files than are tracked (-want +got):\n%s", filepath.Base(archive), diff)
		}
		checkBuild(t, target, files["curt"])
		checkBill(t, bill, files["curt"])
	}
	checkSums(t, made, released)
}

// checkSums holds SHA256SUMS against the files: it has those that are released, and no other.
func checkSums(t *testing.T, folder string, released []string) {
	t.Helper()
	sums := sumsOf(t, folder)
	slices.Sort(released)
	if diff := cmp.Diff(released, slices.Sorted(maps.Keys(sums))); diff != "" {
		t.Errorf("SHA256SUMS is of other files (-want +got):\n%s", diff)
	}
	for name, sum := range sums {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || sum != fmt.Sprintf("%x", sha256.Sum256(text)) {
			t.Errorf("SHA256SUMS has another sum of %s: %v", name, err)
		}
	}
}

// sumsOf reads SHA256SUMS.
func sumsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 2 {
			sums[words[1]] = words[0]
		}
	}
	return sums
}

func single(t *testing.T, folder, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %q, %v", pattern, names, err)
	}
	return names[0]
}

// unpack reads the files of an archive, named without the folder that holds them all.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(plain); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(head.Name, "/")
		switch head.Typeflag {
		case tar.TypeReg:
			files[name] = text
		case tar.TypeSymlink:
			files[name] = []byte(head.Linkname)
		}
	}
}

// checkBuild looks at how a binary was built, and runs it where that is possible.
func checkBuild(t *testing.T, target string, binary []byte) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Errorf("%s: %v", target, err)
		return
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	t.Logf("%s: %.1f MB, %s", target, float64(len(binary))/1e6, info.GoVersion)
	if set["GOOS"]+"_"+set["GOARCH"] != target || set["CGO_ENABLED"] != "0" || set["-trimpath"] != "true" || len(binary) > maxBinary {
		t.Errorf("%s has %d bytes and was built with %v", target, len(binary), set)
	}
	if !strings.HasPrefix(target, "linux") {
		return
	}
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("%s needs %q: %v", target, libraries, err)
	}
	if target != "linux_amd64" {
		return
	}
	file := filepath.Join(t.TempDir(), "curt")
	if err := os.WriteFile(file, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), file, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(said), "SNAPSHOT") {
		t.Errorf("%s says %q of itself: %v", target, said, err)
	}
	texts, err := exec.CommandContext(t.Context(), file, "licenses").CombinedOutput()
	for _, part := range []string{"Go go1.", "go.mau.fi/util", "Mozilla Public License", "svelte"} {
		if err != nil || !strings.Contains(string(texts), part) {
			t.Errorf("%s lacks the licence of %q: %v", target, part, err)
		}
	}
}

// checkBill compares a bill of materials with what the binary says it was built from.
func checkBill(t *testing.T, file string, binary []byte) {
	t.Helper()
	var bill struct {
		Version  string `json:"spdxVersion"`
		Packages []struct {
			Name    string `json:"name"`
			Version string `json:"versionInfo"`
		} `json:"packages"`
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &bill)
	}
	info, wrong := buildinfo.Read(bytes.NewReader(binary))
	if err = errors.Join(err, wrong); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, p := range bill.Packages {
		listed = append(listed, p.Name+" "+p.Version)
	}
	for _, d := range info.Deps {
		if d.Replace != nil && d.Replace.Version == "(devel)" {
			d.Version = "UNKNOWN" // a folder of the project: the list has the module's own name
		} else if d.Replace != nil {
			d = d.Replace
		}
		if !slices.Contains(listed, d.Path+" "+d.Version) {
			t.Errorf("%s does not list %s %s", filepath.Base(file), d.Path, d.Version)
		}
	}
	if !strings.HasPrefix(bill.Version, "SPDX-") || len(info.Deps) < 20 {
		t.Errorf("%s is %q; %d modules are in the binary", filepath.Base(file), bill.Version, len(info.Deps))
	}
}

package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks/clicklog"
)

// Names of a backup's files.
const (
	linksFile    = "curt.db"
	clicksFile   = "clicks.db"
	logFolder    = "clicks"
	keyFile      = "admin.key"
	manifestFile = "manifest.json"
	sumsFile     = "SHA256SUMS"
)

// format is the number of the layout that doc.go describes.
const format = 1

// maxManifest bounds what is read before a checksum held: 100,000 segments have 10 MB.
const maxManifest = 32 << 20

// ErrDamaged means that a backup is not what was written, or not a backup.
var ErrDamaged = errors.New("incomplete backup")

// ErrRows means that rows of the links are damaged, in the data folder as in its copy.
var ErrRows = errors.New("damaged rows of links")

// Manifest says what a backup is.
type Manifest struct {
	Format  int              `json:"format"`
	Curt    string           `json:"curt"`  // version of the program that took it
	Taken   time.Time        `json:"taken"` // the moment that it shows, UTC
	Schemas map[string]int64 `json:"schemas"`
	Counted string           `json:"counted_to"`   // place in the click log
	LogEnd  string           `json:"click_log_to"` // place in the click log
	Files   []File           `json:"files"`
}

// File is one file of a backup.
type File struct {
	Name string `json:"name"` // with slashes
	Size int64  `json:"size"`

	sum [sha256.Size]byte
}

// Bytes returns the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Segments returns how many segments of the click log the backup has.
func (m *Manifest) Segments() (n int) {
	for _, f := range m.Files {
		if strings.HasPrefix(f.Name, logFolder+"/") {
			n++
		}
	}
	return n
}

// sums is the text of SHA256SUMS.
func sums(files []File, manifest []byte) []byte {
	var text bytes.Buffer
	for _, f := range append(slices.Clone(files), File{Name: manifestFile, sum: sha256.Sum256(manifest)}) {
		fmt.Fprintf(&text, "%s  %s\n", hex.EncodeToString(f.sum[:]), f.Name)
	}
	return text.Bytes()
}

// Read reads what a backup says of itself, and none of its files. Afterwards each file
// has the checksum that it must have, and every name is one that a backup may have.
func Read(folder string) (m Manifest, err error) {
	listed, err := readSmall(filepath.Join(folder, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s: %w: it has no %s", folder, ErrDamaged, sumsFile)
	}
	text := []byte(nil)
	if err == nil {
		text, err = readSmall(filepath.Join(folder, manifestFile))
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w: %w", folder, ErrDamaged, err)
	}
	if m, err = parseManifest(listed, text); err != nil {
		return m, fmt.Errorf("%s: %w: %w", folder, ErrDamaged, err)
	}
	return m, m.check(folder)
}

func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxManifest {
		return nil, fmt.Errorf("%s is not part of a backup", filepath.Base(name))
	}
	return os.ReadFile(name)
}

// parseManifest reads the two texts, each of which must be as Take writes it.
func parseManifest(listed, text []byte) (m Manifest, err error) {
	known := map[string][sha256.Size]byte{}
	for line := range strings.Lines(string(listed)) {
		digits, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		sum, err := hex.DecodeString(digits)
		if err != nil || len(sum) != sha256.Size {
			return m, fmt.Errorf("%s is damaged", sumsFile)
		}
		known[name] = [sha256.Size]byte(sum)
	}
	if known[manifestFile] != sha256.Sum256(text) {
		return m, fmt.Errorf("%s or %s is damaged", manifestFile, sumsFile)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestFile, err)
	}
	for i := range m.Files {
		f := &m.Files[i]
		f.sum = known[f.Name]
		if !allowed(f.Name) || f.Size < 0 {
			return m, fmt.Errorf("%s names %q", manifestFile, f.Name)
		}
	}
	if !bytes.Equal(sums(m.Files, text), listed) {
		return m, fmt.Errorf("%s is damaged", sumsFile)
	}
	for _, name := range []string{linksFile, clicksFile} {
		if !slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == name }) {
			return m, fmt.Errorf("it has no %s", name)
		}
	}
	return m, nil
}

// allowed keeps a manifest from naming a file outside of the folders.
func allowed(name string) bool {
	segment, inLog := strings.CutPrefix(name, logFolder+"/")
	return name == linksFile || name == clicksFile || name == keyFile || inLog && clicklog.IsSegment(segment)
}

// check refuses what this program cannot read.
func (m *Manifest) check(folder string) error {
	links, err := sqlite.Schema()
	rollups, failed := counts.Schema()
	switch err = errors.Join(err, failed); {
	case err != nil:
		return err
	case m.Format != format, m.Schemas[linksFile] > links, m.Schemas[clicksFile] > rollups:
		return fmt.Errorf("%s was created by a newer curt, %s: restore it with that version", folder, m.Curt)
	}
	return nil
}

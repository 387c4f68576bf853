package mmdb

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"curt/internal/statefile"
)

// Update says which file is replaced by what a URL has. A server that has the file open takes the
// new one within a minute.
type Update struct {
	URL    string // of a .mmdb file, gzipped or in a .tar.gz or not
	Path   string // is replaced, or created
	SHA256 string // of what the URL has, in hexadecimal; "" = not checked
	Now    time.Time

	Transport http.RoundTripper // nil = http.DefaultTransport
}

// Updated is what an Update found.
type Updated struct {
	Kind     string // of the database, as it says itself
	Built    time.Time
	Networks int
	Replaced bool // false: the file in place is as new, and stays
}

const (
	// downloadLimit bounds the time of a download: 2 GiB at 1 MB/s.
	downloadLimit = 40 * time.Minute
	// leastFile is less than the metadata of any database.
	leastFile = 256
	// readableByAll is the mode of a new file: the server may run as another user.
	readableByAll = 0o644
)

var (
	errInsecure = errors.New("expected an https URL, or http with a SHA-256 to check against")
	errSize     = errors.New("the file is larger than 4 GiB")
	errDigest   = errors.New("the SHA-256 of the download is another one")
	errDamaged  = errors.New("the file is damaged or not an .mmdb file")
	errEmpty    = errors.New("the database has no country, city or network")
)

// CheckURL reports what is wrong with a URL for updates.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return errors.New("expected https://host/path")
	}
	return nil
}

// Run downloads the file beside the one in place, reads all of it, and renames it over that one if
// it is newer. After an error the file in place is as before. No error shows the URL, which may
// have a password.
func (u Update) Run(ctx context.Context) (Updated, error) {
	if err := CheckURL(u.URL); err != nil {
		return Updated{}, err
	}
	if !strings.HasPrefix(u.URL, "https:") && u.SHA256 == "" {
		return Updated{}, errInsecure
	}
	ctx, cancel := context.WithTimeout(ctx, downloadLimit)
	defer cancel()
	temporary, err := os.CreateTemp(filepath.Dir(u.Path), ".geoip-*")
	if err != nil {
		return Updated{}, fmt.Errorf("create the new file: %w", err)
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // renamed, or not to be used
	err = u.download(ctx, temporary)
	if err == nil {
		err = temporary.Sync()
	}
	if err := errors.Join(err, temporary.Close()); err != nil {
		return Updated{}, fmt.Errorf("download: %w", err)
	}
	found, err := inspect(ctx, temporary.Name())
	if err != nil {
		return Updated{}, fmt.Errorf("check the download: %w", err)
	}
	if found.Built.After(u.Now.Add(24 * time.Hour)) {
		return Updated{}, fmt.Errorf("check the download: built on %s, in the future", found.Built.Format(time.DateOnly))
	}
	if old, err := read(u.Path, new(stats)); err == nil && !found.Built.After(old.built) {
		return found, nil
	}
	if err := replace(temporary.Name(), u.Path); err != nil {
		return Updated{}, fmt.Errorf("replace %s: %w", u.Path, err)
	}
	found.Replaced = true
	return found, nil
}

// replace renames a file over another, which may not exist, and makes that durable.
func replace(from, to string) error {
	mode := fs.FileMode(readableByAll)
	if info, err := os.Stat(to); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.Chmod(from, mode); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return statefile.SyncFolder(filepath.Dir(to))
}

// download writes the database that the URL has to w.
func (u Update) download(ctx context.Context, w io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL, http.NoBody)
	if err != nil {
		return errors.New("expected https://host/path") // err has the URL
	}
	client := http.Client{Transport: u.Transport, CheckRedirect: secure}
	response, err := client.Do(request)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err // without the URL
	}
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %d", response.StatusCode)
	}
	if response.ContentLength > maxFile {
		return errSize
	}
	digest := sha256.New()
	body := io.TeeReader(io.LimitReader(response.Body, maxFile+1), digest)
	if err := unpack(w, body); err != nil {
		return err
	}
	return u.same(body, digest)
}

// same reads what follows the database, and compares the digest.
func (u Update) same(rest io.Reader, digest hash.Hash) error {
	if u.SHA256 == "" {
		return nil
	}
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); !strings.EqualFold(got, u.SHA256) {
		return fmt.Errorf("%w: %s", errDigest, got)
	}
	return nil
}

// secure keeps a redirect from leaving https.
func secure(next *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 10:
		return errors.New("more than 10 redirects")
	case via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https":
		return errors.New("redirected from https to " + next.URL.Scheme)
	}
	return nil
}

// unpack copies a database, out of gzip and tar if it is in them.
func unpack(w io.Writer, r io.Reader) error {
	const tarMagic, magicAt = "ustar", 257
	b := bufio.NewReaderSize(r, 64<<10)
	if start, _ := b.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) { // a shorter file is not compressed
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		b = bufio.NewReaderSize(z, 64<<10)
	}
	from := io.Reader(b)
	if start, _ := b.Peek(magicAt + len(tarMagic)); len(start) > magicAt && string(start[magicAt:]) == tarMagic { // a shorter file is no archive
		archive := tar.NewReader(b)
		for {
			entry, err := archive.Next()
			if err != nil {
				return fmt.Errorf("find an .mmdb file in the archive: %w", err)
			}
			if entry.Typeflag == tar.TypeReg && path.Ext(entry.Name) == ".mmdb" {
				break
			}
		}
		from = archive
	}
	n, err := io.Copy(w, io.LimitReader(from, maxFile+1)) // a small gzip may be a large file
	switch {
	case err != nil:
		return err
	case n > maxFile:
		return errSize
	case n < leastFile:
		return errDamaged
	}
	return nil
}

// inspect reads a file as a server does, and every record in it.
func inspect(ctx context.Context, name string) (u Updated, err error) {
	e, err := read(name, new(stats))
	if err != nil {
		return u, fmt.Errorf("%w: %w", errDamaged, err)
	}
	defer func() {
		if p := recover(); p != nil { // as in locate
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	u = Updated{Kind: e.kind, Built: e.built}
	seen := map[uintptr]struct{}{}
	places := false
	for network := range e.reader.Networks() {
		if err := network.Err(); err != nil {
			return u, fmt.Errorf("%w: %w", errDamaged, err)
		}
		if u.Networks++; u.Networks%4096 == 0 && ctx.Err() != nil {
			return u, context.Cause(ctx)
		}
		if _, known := seen[network.Offset()]; known {
			continue
		}
		seen[network.Offset()] = struct{}{}
		place, whole := decode(network)
		if !whole {
			return u, fmt.Errorf("%w: the record of %s", errDamaged, network.Prefix())
		}
		places = places || place.Country != [2]byte{} || place.City != "" || place.Network != ""
	}
	if !places {
		return u, errEmpty
	}
	return u, nil
}

package auth

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"curt/internal/statefile"
)

// keyBytes is the strength of a key that we make: 160 bits, which base32 writes
// in 32 characters without a remainder.
const keyBytes = 20

// NewKey returns a key with 160 bits read from random, normally
// crypto/rand.Reader.
func NewKey(random io.Reader) (string, error) {
	var secret [keyBytes]byte
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return "", fmt.Errorf("read random bits of a key: %w", err)
	}
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret[:])
	return Prefix + strings.ToLower(text), nil
}

// LoadOrCreateAdminKey returns the key in the file at path. If there is no such
// file it makes a key and writes the file, mode 0600 whatever the umask, so that
// it is there whole or not at all after a crash; made says so. A file that holds
// no key is an error and is left alone. The caller holds the lock of the data
// folder: two processes that make the file at once would disagree.
func LoadOrCreateAdminKey(path string, random io.Reader) (key string, made bool, err error) {
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		key = strings.TrimSpace(string(text))
		if err := CheckKey(key); err != nil {
			return "", false, fmt.Errorf("read %s: %w", path, err)
		}
		return key, false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", false, fmt.Errorf("read the admin key: %w", err)
	}
	if key, err = NewKey(random); err != nil {
		return "", false, err
	}
	if err := statefile.Replace(path, []byte(key+"\n")); err != nil {
		return "", false, fmt.Errorf("write the admin key: %w", err)
	}
	return key, true, nil
}

// KeyFileExposed reports whether others than the owner may read the file. It is
// worth a warning, not a refusal: the server must not stay down for a chmod.
func KeyFileExposed(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("check the admin key: %w", err)
	}
	return info.Mode().Perm()&0o077 != 0, nil
}

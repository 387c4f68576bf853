// Command pack writes the table of countries from the data of a module, whose version go.mod
// names, and compares each entry with what the module itself answers. It runs at the top of
// the repository: scripts/countries.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/phuslu/iploc"

	"curt/internal/backend/countries"
	"curt/internal/clicks"
)

func main() {
	if err := pack(filepath.Join("internal", "backend", "countries", countries.Folder)); err != nil {
		fmt.Fprintln(os.Stderr, "countries:", err)
		os.Exit(1)
	}
}

func pack(to string) error {
	_, date, _ := strings.Cut(strings.TrimPrefix(iploc.Version, "v1."), ".")
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", countries.Module).Output() //nolint:noctx,gosec // ends with the build; a constant
	if err != nil {
		return fmt.Errorf("find %s: %w", countries.Module, err)
	}
	from := strings.TrimSpace(string(out))
	for _, name := range []string{countries.IPv4, countries.IPv6} {
		entries, err := read(from, name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if got := clicks.ParseCountry(iploc.IPCountry(e.From)); got != e.Country {
				return fmt.Errorf("%s is in %q, and in %q by %s", e.From, e.Country, got, countries.Module)
			}
		}
		file, err := countries.Pack(date, entries)
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(to, name), file, 0o644); err != nil { //nolint:gosec // part of the program
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// read returns the entries of a family: <name>.txt has their countries, two letters each, and
// ipv4le.bin or ipv6le.gz their beginnings, little-endian. Neighbors of one country become one entry.
func read(from, name string) ([]countries.Entry, error) {
	letters, err := os.ReadFile(filepath.Join(from, name+".txt"))
	if err != nil {
		return nil, fmt.Errorf("read the countries: %w", err)
	}
	beginnings, size, err := readBeginnings(from, name)
	if err != nil {
		return nil, err
	}
	if len(beginnings)/size != len(letters)/2 {
		return nil, fmt.Errorf("%s has %d beginnings and %d countries", name, len(beginnings)/size, len(letters)/2)
	}
	var entries []countries.Entry
	for i := range len(letters) / 2 {
		e := countries.Entry{From: address(beginnings[i*size:][:size]), Country: clicks.ParseCountry(letters[2*i:][:2])}
		if n := len(entries); n == 0 || entries[n-1].Country != e.Country {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func readBeginnings(from, name string) (b []byte, size int, err error) {
	if name == countries.IPv4 {
		if b, err = os.ReadFile(filepath.Join(from, "ipv4le.bin")); err != nil {
			return nil, 0, fmt.Errorf("read the addresses: %w", err)
		}
		return b, 4, nil
	}
	packed, err := os.ReadFile(filepath.Join(from, "ipv6le.gz"))
	if err != nil {
		return nil, 0, fmt.Errorf("read the addresses: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, 0, fmt.Errorf("read the addresses: %w", err)
	}
	if b, err = io.ReadAll(z); err != nil {
		return nil, 0, fmt.Errorf("read the addresses: %w", err)
	}
	return b, 16, nil
}

func address(b []byte) netip.Addr {
	if len(b) == 4 {
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.LittleEndian.Uint32(b))))
	}
	high := binary.BigEndian.AppendUint64(nil, binary.LittleEndian.Uint64(b))
	return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(high, binary.LittleEndian.Uint64(b[8:]))))
}

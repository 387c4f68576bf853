package dashboard_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// places makes a file of places for the addresses 203.0.113.0/24, some of each country.
func places(t *testing.T) string {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "City", RecordSize: 24, IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, place := range [][2]string{
		{"DE", "Berlin"}, {"DE", "Köln"}, {"US", "New York"}, {"JP", "東京"}, {"BR", "São Paulo"}, {"IN", "Mumbai"}, {"FR", "Paris"}, {"NG", "Lagos"},
	} {
		_, network, err := net.ParseCIDR(fmt.Sprintf("203.0.113.%d/27", i*32))
		if err != nil {
			t.Fatal(err)
		}
		err = tree.Insert(network, mmdbtype.Map{
			"country": mmdbtype.Map{"iso_code": mmdbtype.String(place[0])},
			"city":    mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String(place[1])}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "places.mmdb")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

package clienttls_test

import (
	"net/url"
	"path/filepath"
	"testing"

	"curt/internal/clienttls"
	"curt/internal/testkit"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir, a := t.TempDir(), testkit.NewAuthority(t)
	ca := a.File
	cert, key := a.Pair(t, dir, "client")
	_, other := a.Pair(t, dir, "other")
	for query, want := range map[string]struct{ tls, wrong bool }{
		"":                                 {},
		"tls=false":                        {},
		"tls=true":                         {tls: true},
		"ca=" + ca:                         {tls: true},
		"tls=true&ca=" + ca:                {tls: true},
		"cert=" + cert + "&key=" + key:     {tls: true},
		"tls=yes":                          {wrong: true},
		"tls=false&ca=" + ca:               {wrong: true},
		"cert=" + cert:                     {wrong: true},
		"tls=true&key=" + key:              {wrong: true},
		"cert=" + cert + "&key=" + other:   {wrong: true},
		"ca=" + key:                        {wrong: true},
		"ca=" + dir:                        {wrong: true},
		"ca=" + filepath.Join(dir, "none"): {wrong: true},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		c, err := clienttls.Read(q)
		if (err != nil) != want.wrong || err == nil && (c != nil) != want.tls {
			t.Errorf("%s: %+v, %v", query, c, err)
		}
	}
}

package zookeeper_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/zookeeper"
	"curt/internal/testkit"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]zookeeper.Config{
		"zookeeper://zk1/curt":                         {Servers: []string{"zk1:2181"}, Path: "/curt"},
		"zookeeper://zk1:2181,zk2:2182/links/curt":     {Servers: []string{"zk1:2181", "zk2:2182"}, Path: "/links/curt"},
		"zookeeper://[::1]:2181,127.0.0.1/curt":        {Servers: []string{"[::1]:2181", "127.0.0.1:2181"}, Path: "/curt"},
		"zookeeper://curt:p%40ss%2Fword@zk1:2181/curt": {Servers: []string{"zk1:2181"}, Path: "/curt", User: "curt", Password: "p@ss/word"},
	} {
		got, err := zookeeper.Parse(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{
		"", "zookeeper://", "zookeeper:///curt", "zookeeper://zk1", "zookeeper://zk1/", "zookeeper://zk1/a/", "zookeeper://zk1//a", "zookeeper://zk1/a/../b",
		"zookeeper://zk1:0/a", "zookeeper://zk1:99999/a", "zookeeper://zk1,/a", "zookeeper://zk1:2181:1/a", "zookeeper://zk1/zookeeper", "zookeeper://zk1/zookeeper/quota",
		"zookeeper://secret@zk1/a", "zookeeper://:secret@zk1/a", "zookeeper://a:secret%zz@zk1/a", "zookeeper://a%3Ab:secret@zk1/a", "zookeeper://zk1/a?secret", "zookeeper://zk1/a?secret=1&tls=true", "zookeeper://zk1/a?ca=%zzsecret", "zookeeper://u:pa?secret@zk1/a", "zookeeper://zk1?tls=true", "zookeeper://zk1/a?tls=yes", "zookeeper://zk1/a?ca=/none/there", "zookeeper://zk1/a?cert=/none/there", "zookeeper://zk1/a#secret",
		"zookeeper://zk1/a b", "zookeeper://zk1/\u00e4", "redis://zk1/a",
	} {
		if got, err := zookeeper.Parse(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%q) = %+v, %v; want an error without the password", text, got, err)
		}
	}
}

func TestParseTLS(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	cert, key := a.Pair(t, t.TempDir(), "client")
	for query, want := range map[string]string{"": "zk1:2181", "?tls=false": "zk1:2181", "?tls=true": "zk1:2281", "?ca=" + a.File: "zk1:2281", "?cert=" + cert + "&key=" + key: "zk1:2281"} {
		c, err := zookeeper.Parse("zookeeper://u:p@zk1,zk2:7/curt" + query)
		if err != nil || (c.TLS != nil) != (want == "zk1:2281") || len(c.Servers) != 2 || c.Servers[0] != want || c.Servers[1] != "zk2:7" || c.Path != "/curt" || c.Password != "p" {
			t.Errorf("%s: %+v, %v", query, c, err)
		}
	}
}

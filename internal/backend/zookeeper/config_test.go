package zookeeper_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/zookeeper"
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
		"zookeeper://secret@zk1/a", "zookeeper://:secret@zk1/a", "zookeeper://a:secret%zz@zk1/a", "zookeeper://a%3Ab:secret@zk1/a", "zookeeper://zk1/a?secret", "zookeeper://zk1/a#secret",
		"zookeeper://zk1/a b", "zookeeper://zk1/\u00e4", "redis://zk1/a",
	} {
		if got, err := zookeeper.Parse(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%q) = %+v, %v; want an error without the password", text, got, err)
		}
	}
}

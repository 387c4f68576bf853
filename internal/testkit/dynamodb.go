package testkit

import (
	"crypto/rand"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// DynamoDB is DynamoDB Local: its indexes are immediate, it throttles nobody, and nothing expires
// promptly.
type DynamoDB struct {
	Address string // host:port
	*service
}

// StartDynamoDB starts one that has all in memory, or on the disk, which ends with the test. It takes
// any credentials: those of the test's environment are set to some.
func StartDynamoDB(t *testing.T, disk bool) *DynamoDB {
	t.Helper()
	where, port := "memory", FreePort(t)
	if disk {
		where = "disk"
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "local")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := launch(t, "dynamodb", filepath.Join(os.TempDir(), "curt-dynamodb-"+rand.Text()), port, where)()
	return &DynamoDB{net.JoinHostPort("127.0.0.1", port), s}
}

// Endpoint is where requests go.
func (d *DynamoDB) Endpoint() string { return "http://" + d.Address }

// URL names a table there, as CURT_LINKS does.
func (d *DynamoDB) URL(table string) string { return DynamoDBURL(table, d.Endpoint()) }

// DynamoDBURL names a table at an endpoint, such as a proxy.
func DynamoDBURL(table, endpoint string) string {
	query := url.Values{"region": {"eu-central-1"}, "endpoint": {endpoint}, "protection": {"off"}}
	return "dynamodb://" + table + "?" + query.Encode()
}

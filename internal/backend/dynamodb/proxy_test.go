package dynamodb_test

import (
	"encoding/json"
	"sync"
	"testing"

	"curt/internal/testkit"
)

type (
	request = testkit.DynamoDBRequest
	answer  = testkit.DynamoDBAnswer
)

// proxy stands before DynamoDB Local.
type proxy struct {
	*testkit.DynamoDBProxy

	past *past // nil = indexes are those of now
}

func startProxy(t *testing.T, d *testkit.DynamoDB) *proxy {
	t.Helper()
	p := &proxy{DynamoDBProxy: testkit.StartDynamoDBProxy(t, d)}
	p.Rewrite = func(r *request) (changed bool) {
		if p.past != nil && r.Operation == "Query" && r.Body["IndexName"] != nil {
			r.Body["TableName"] = p.past.table
			return true
		}
		return false
	}
	p.Passed = func(r request) {
		if p.past != nil {
			p.past.note(r)
		}
	}
	return p
}

// past is what indexes show: the links of one table as they were at the last catchUp.
type past struct {
	table string // a copy whose indexes are asked
	of    string

	mu    sync.Mutex
	news  []any // keys of links that were written since; guarded by mu
	read  func(key map[string]any) map[string]any
	write func(item map[string]any)
}

// note keeps the key of each link that a write changed.
func (p *past) note(r request) {
	keys := p.keys(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.news = append(p.news, keys...)
}

func (p *past) keys(r request) (keys []any) {
	add := func(write any, under string) {
		body, _ := write.(map[string]any)
		if body == nil || body["TableName"] != p.of {
			return
		}
		if item, _ := body[under].(map[string]any); item != nil {
			keys = append(keys, item["k"])
		}
	}
	switch r.Operation {
	case "PutItem":
		add(r.Body, "Item")
	case "UpdateItem":
		add(r.Body, "Key")
	case "TransactWriteItems":
		all, _ := r.Body["TransactItems"].([]any)
		for _, one := range all {
			writes, _ := one.(map[string]any)
			add(writes["Put"], "Item")
			add(writes["Update"], "Key")
		}
	}
	return keys
}

// catchUp shows what was written before it was called.
func (p *past) catchUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, key := range p.news {
		name, _ := json.Marshal(key)
		if seen[string(name)] {
			continue
		}
		seen[string(name)] = true
		if item := p.read(map[string]any{"k": key}); item != nil {
			p.write(item)
		}
	}
	p.news = nil
}

package config_test

import (
	"errors"
	"strings"
	"testing"

	"curt/internal/config"
)

func TestRoles(t *testing.T) {
	for name, tt := range map[string]struct {
		role, links, counts, api string
		codes                    string
		events                   string
		writes                   string // CURT_WRITES_KAFKA
		queued                   bool
		wrong                    string // the setting and what is said; "" = nothing
	}{
		"all alone":                {role: "all", links: "sqlite"},
		"every role by name":       {role: "worker,api,redirect", links: "sqlite"},
		"a redirect":               {role: "redirect", links: "postgres://db/curt", counts: "postgres://db/counts"},
		"a worker":                 {role: "worker", links: "postgres://db/curt"},
		"counts for nobody":        {role: "redirect", links: "postgres://db/curt", wrong: "set CURT_ANALYTICS"},
		"nothing to count":         {role: "api,worker", links: "postgres://db/curt", wrong: "set CURT_ANALYTICS"},
		"two":                      {role: "api,worker", links: "postgres://db/curt", counts: "postgres://db/counts", api: ":1"},
		"nobody's":                 {role: "cook", links: "sqlite", wrong: "CURT_ROLE=cook: expected all"},
		"hostile":                  {role: "all\nredirect", links: "sqlite", wrong: `CURT_ROLE="all\nredirect": expected all`},
		"empty":                    {role: "api,", links: "postgres://db/curt", wrong: "extra comma"},
		"twice":                    {role: "api,api", links: "postgres://db/curt", counts: "postgres://db/counts", wrong: "set twice"},
		"all and more":             {role: "all,api", links: "postgres://db/curt", wrong: "use it alone"},
		"a part on a folder":       {role: "redirect", links: "sqlite", wrong: "out of reach of other servers"},
		"a redirect that sends":    {role: "redirect", links: "postgres://db/curt", events: "kafka://k"},
		"a worker that reads":      {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://c/curt"},
		"a worker for nobody":      {role: "worker", links: "postgres://db/curt", events: "kafka://k", wrong: "set CURT_ANALYTICS=clickhouse"},
		"replicas":                 {role: "api,worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt,clickhouse://b/curt"},
		"replicas unfed":           {role: "api", links: "postgres://db/curt", counts: "clickhouse://a/curt,clickhouse://b/curt", wrong: "several ClickHouse servers get the same clicks from Kafka; also set CURT_EVENTS="},
		"a replica twice":          {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt,clickhouse://a/curt", wrong: "set twice"},
		"a replica by other users": {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://u:p@A:9000/curt,clickhouse://v:q@a:9000/curt?secure=true", wrong: "set twice"},
		"two databases of one":     {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt,clickhouse://a/curt2"},
		"a comma at the end":       {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt,", wrong: "CURT_ANALYTICS=clickhouse://a/curt,: empty entry; remove the extra comma"},
		"and behind two":           {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt,clickhouse://b/curt,", wrong: "remove the extra comma"},
		"and behind a host":        {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a:9000,", wrong: "remove the extra comma"},
		"and behind parameters":    {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt?secure=true,", wrong: "remove the extra comma"},
		"and of PostgreSQL":        {role: "worker", links: "postgres://db/curt", counts: "postgres://db/curt,", wrong: "remove the extra comma"},
		"a comma in front":         {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: ",clickhouse://a/curt", wrong: "remove the extra comma"},
		"two commas":               {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt,,clickhouse://b/curt", wrong: "remove the extra comma"},
		"a space":                  {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://u:p@a/curt, clickhouse://u:p@b/curt", wrong: "no spaces between URLs"},
		"no scheme":                {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a/curt,b/curt", wrong: "each of which begins with clickhouse://"},
		"two hosts":                {role: "worker", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://a:9000,b:9000/curt"},
		"counts elsewhere":         {role: "redirect", links: "postgres://db/curt", events: "kafka://k", counts: "postgres://db/counts", wrong: "set CURT_ANALYTICS=clickhouse"},
		"nothing comes":            {role: "redirect", links: "postgres://db/curt", counts: "clickhouse://c/curt", wrong: "set CURT_EVENTS=kafka"},
		"statistics elsewhere":     {role: "redirect,api", links: "postgres://db/curt", events: "kafka://k", counts: "clickhouse://c/curt"},
		"statistics nowhere":       {role: "api", links: "postgres://db/curt", events: "kafka://k", wrong: "set CURT_ANALYTICS=clickhouse"},
		"no such bus":              {role: "redirect", links: "postgres://db/curt", events: "nats://n", wrong: "expected kafka://"},
		"an address for no API":    {role: "redirect,worker", links: "postgres://db/curt", counts: "postgres://db/counts", api: ":1", wrong: "CURT_API_LISTEN=:1: CURT_ROLE=redirect,worker has no API"},
		"keys":                     {role: "keys", links: "postgres://db/curt", codes: "pool"},
		"keys and a redirect":      {role: "redirect,keys", links: "postgres://db/curt", counts: "postgres://db/counts", codes: "pool"},
		"keys for nobody":          {role: "keys", links: "postgres://db/curt", wrong: "CURT_ROLE=keys: keys are generated for CURT_CODES=pool only"},
		"keys on a folder":         {role: "keys", links: "sqlite", codes: "pool", wrong: "out of reach of other servers"},
		"a pool alone":             {role: "all", links: "sqlite", codes: "pool"},
		"a pool by name":           {role: "redirect,api,worker,keys", links: "sqlite", codes: "pool"},
		"a pool without keys":      {role: "redirect,api,worker", links: "sqlite", codes: "pool", wrong: "CURT_CODES=pool needs the role keys"},
		"a writer":                 {role: "writer", links: "postgres://db/curt", writes: "kafka://k/writes"},
		"a writer beside clicks":   {role: "writer", links: "postgres://db/curt", events: "kafka://k", queued: true},
		"a writer for nobody":      {role: "writer", links: "postgres://db/curt", wrong: "CURT_ROLE=writer: links are queued with CURT_WRITES=queued only"},
		"a queue alone":            {role: "all", links: "sqlite", writes: "kafka://k/writes"},
		"a queue of random codes":  {role: "all", links: "sqlite", writes: "kafka://k/writes", codes: "random", wrong: "use range, snowflake or pool"},
		"a queue without a writer": {role: "redirect,api,worker", links: "sqlite", writes: "kafka://k/writes", wrong: "CURT_WRITES=queued needs the role writer"},
		"a queue nowhere":          {role: "api", links: "postgres://db/curt", counts: "postgres://db/counts", queued: true, wrong: "links are queued in Kafka; also set CURT_WRITES_KAFKA"},
		"redirects beside a queue": {role: "redirect", links: "postgres://db/curt", counts: "postgres://db/counts", queued: true},
		"a queue of others":        {role: "all", links: "sqlite", writes: "nats://n", wrong: "expected kafka://"},
		"a pool of others":         {role: "redirect,api,worker", links: "postgres://db/curt", codes: "pool"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--role=" + tt.role, "--links=" + tt.links}
			if tt.counts != "" {
				args = append(args, "--analytics="+tt.counts)
			}
			if tt.writes != "" {
				args = append(args, "--writes-kafka="+tt.writes)
			}
			if tt.queued || tt.writes != "" {
				args = append(args, "--writes=queued")
			}
			if tt.codes != "" {
				args = append(args, "--codes="+tt.codes)
			}
			if tt.events != "" {
				args = append(args, "--events="+tt.events)
			}
			if tt.api != "" {
				args = append(args, "--api-listen="+tt.api)
			}
			f, err := read(t, "", args...)
			if err == nil {
				err = f.Wrong()
			}
			switch {
			case tt.wrong == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.wrong == "":
			case err == nil || !strings.Contains(err.Error(), tt.wrong) || !errors.As(err, new(*config.Error)):
				t.Errorf("said %v, want %q", err, tt.wrong)
			case strings.Contains(err.Error(), "\n"):
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

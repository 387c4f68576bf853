package readme_test

// row is a line of a page that is not simply typed.
type row struct {
	line string // as it stands there
	do   string // what is typed instead; "" = the line itself
	says string // a regular expression that the answer matches; "" = anything
	// stays is a server: it runs until the test ends, and the next line waits for it.
	stays bool
	skip  string // why it is not run here; "" = it is
}

// rows is everything that the test knows about single lines. Beside it, three things are
// replaced everywhere: localhost:8080 by a free port, CODE by the code of the first link
// that was made, and the settings say that port, because every test has its own.
func rows() []row {
	const mentioned = " --help" // the text speaks of the command; docs/cli.md, which it leads to, has its examples
	return []row{
		{line: "make run", stays: true},
		{line: "http://localhost:8080", says: `<form`},
		{line: "bin/curt shorten https://go.dev/doc/effective_go", says: `^http://localhost:8080/[0-9A-Za-z]{7}\n$`},
		{line: "bin/curt stats CODE", says: `(?m)^clicks  +0$`},
		{line: "bin/curt qr CODE", says: `^<svg`},
		{line: "bin/curt links share CODE", says: `^http://localhost:8080/CODE/stats\?share=.+\n$`},
		{
			line: "bin/curt shorten < urls.txt", do: `printf 'https://example.com/a\nhttps://example.com/b\n' > urls.txt; bin/curt shorten < urls.txt`,
			says: `^(http://localhost:8080/\w+\n){2}$`,
		},
		{line: "curt links", do: "curt links" + mentioned, says: `disable`},
		{line: "curt clicks", do: "curt clicks" + mentioned, says: `clicks show`},
		{line: "curt keys", do: "curt keys" + mentioned, says: `rotate`},
		{
			line: `curl -X POST http://localhost:8080/api/v1/links -H 'Content-Type: application/json' -d '{"long_url": "https://go.dev/doc/effective_go", "expires_in": 86400}'`,
			says: `"short_url": ?"http://localhost:8080/`,
		},
		{line: "curt import", do: "curt import" + mentioned, says: `--dry-run`},
		{line: "curt export", do: "curt export" + mentioned, says: `--csv`},
		{line: "curt backup", do: "curt backup copy", says: `backed up`},
		{line: "http://localhost:8080/api/docs", says: `<h1>curt API`},
		{line: "bin/curt links disable CODE", do: "bin/curt links disable CODE 2>&1", says: `^disabled http://localhost:8080/CODE\n$`},
		{line: "curt config print", says: `(?m)^listen = `},
		{line: "curt config check", says: `all values are valid`},
		{line: "make fleet", skip: "test/deploy starts a fleet"},
		{line: "make test", skip: "it is what runs this test"},
	}
}

// tutorialRows is what the test knows about lines of docs/tutorial.md.
func tutorialRows() []row {
	const (
		mentioned = " --help"
		postgres  = "needs PostgreSQL: test/postgres runs two servers over one"
		redis     = "needs Redis: test/redis"
		kafka     = "needs Kafka and ClickHouse: test/events runs the roles"
	)
	return []row{
		{line: "make build", skip: "the binary under test takes its place"},
		{line: "bin/curt serve", stays: true},
		{line: "http://localhost:8080", says: `<form`},
		{line: "bin/curt shorten https://go.dev/doc/effective_go", says: `^http://localhost:8080/[0-9A-Za-z]{7}\n$`},
		{
			line: "bin/curt shorten --alias=spring --title='Spring sale' --tag=sale https://example.com/spring",
			says: `^http://localhost:8080/spring\n$`,
		},
		{
			line: `curl -s -o spring.html -w '%{http_code} %{redirect_url}\n' http://localhost:8080/spring`,
			says: `^302 https://example.com/spring\n$`,
		},
		{line: "bin/curt links list --tag=sale", do: eventually("bin/curt links list --tag=sale", "spring"), says: `localhost:8080/spring`},
		{line: "http://localhost:8080/spring+", says: `<strong>example.com</strong>`},
		{line: "cat data/admin.key", says: `^curt_`},
		{line: "bin/curt keys create website --scope=links:read,links:write --workspace=web > website.key"},
		{
			line: `curl -s -X POST http://localhost:8080/api/v1/links -H "Authorization: Bearer $(cat website.key)" -H 'Content-Type: application/json' -d '{"long_url": "https://example.com/news", "dedupe": true}'`,
			says: `"workspace_id": ?"web"`,
		},
		{line: "curt import", do: "curt import" + mentioned},
		{line: "bin/curt import old.csv", do: "bin/curt import old.csv; cat old.csv.results.jsonl", says: `"short_code":"autumn"`},
		{line: "bin/curt stats spring", do: eventually("bin/curt stats spring", "clicks *1"), says: `(?m)^clicks +1$`},
		{line: "bin/curt stats spring --dimension=referrer_host,browser --csv", says: `^dimension,value,clicks\n`},
		{line: "bin/curt links share spring --for=168h", says: `/spring/stats\?share=`},
		{line: "bin/curt backup monday", says: `monday`},
		{line: "bin/curt config check", do: "bin/curt config check || [ $? = 78 ]"},
		{line: "bin/curt doctor", do: "bin/curt doctor || [ $? = 1 ]", says: `ok`},
		{line: "bin/curt export -o links.jsonl", do: "bin/curt export -o links.jsonl; cat links.jsonl", says: `"short_code":"spring"`},
		{line: "createdb curt", skip: postgres},
		{line: "export CURT_LINKS='postgres:///curt?host=/var/run/postgresql'", skip: postgres},
		{line: "export CURT_ADMIN_KEY=$(cat data/admin.key)", skip: postgres},
		{line: "CURT_DATA=one CURT_LISTEN=127.0.0.1:8081 CURT_ADMIN_LISTEN=127.0.0.1:9091 bin/curt serve &", skip: postgres},
		{line: "CURT_DATA=two CURT_LISTEN=127.0.0.1:8082 CURT_ADMIN_LISTEN=127.0.0.1:9092 bin/curt serve &", skip: postgres},
		{line: "CURT_SERVER=http://127.0.0.1:8081 CURT_API_KEY=$CURT_ADMIN_KEY bin/curt import links.jsonl", skip: postgres},
		{line: "export CURT_ANALYTICS='postgres:///curt?host=/var/run/postgresql'", skip: postgres},
		{line: "export CURT_CACHE=redis://127.0.0.1:6379/0", skip: redis},
		{line: "unset CURT_ANALYTICS", skip: kafka},
		{line: "export CURT_EVENTS=kafka://k1.example:9092,k2.example:9092,k3.example:9092/clicks", skip: kafka},
		{line: "export CURT_ANALYTICS=clickhouse://ch.example:9000/curt", skip: kafka},
		{line: "bin/curt migrate", skip: kafka},
		{line: "CURT_ROLE=redirect bin/curt serve", skip: kafka},
		{line: "CURT_ROLE=api bin/curt serve", skip: kafka},
		{line: "CURT_ROLE=worker bin/curt serve", skip: kafka},
		{line: "curt migrate", do: "curt migrate" + mentioned},
		{line: "curt clicks servers", do: "curt clicks servers" + mentioned},
		{line: "curt clicks verify", do: "curt clicks verify" + mentioned},
	}
}

// eventually repeats a command until its output matches: search and statistics follow within
// seconds. The test's own bound ends it.
func eventually(command, pattern string) string {
	return "until " + command + " | grep -q '" + pattern + "'; do sleep 0.1; done; " + command
}

// apiRows is what the test knows about lines of docs/api.md.
func apiRows() []row {
	return []row{
		{
			line: `curl -X POST http://localhost:8080/api/v1/keys -H "Authorization: Bearer $(cat data/admin.key)" -H 'Content-Type: application/json' -d '{"name": "CI", "scopes": ["links:read", "links:write"], "workspace_id": "web"}'`,
			says: `"key": ?"curt_`,
		},
	}
}

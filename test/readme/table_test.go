package readme_test

// row is a line of README.md that is not simply typed.
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
		{
			line: `curl -X POST http://localhost:8080/api/v1/keys -H "Authorization: Bearer $(cat data/admin.key)" -H 'Content-Type: application/json' -d '{"name": "CI", "scopes": ["links:read", "links:write"], "workspace_id": "web"}'`,
			says: `"key": ?"curt_`,
		},
		{line: "curt config print", says: `(?m)^listen = `},
		{line: "curt config check", says: `every value is understood`},
		{line: "make test", skip: "it is what runs this test"},
	}
}

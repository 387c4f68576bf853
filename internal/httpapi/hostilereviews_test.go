package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
)

// badReports are wrong for those who report, appeal or moderate.
func badReports() (all []hostile) {
	report := func(members string) string { return `{"code":"victim","category":"spam"` + members + `}` }
	appeal := func(members string) string { return `{"code":"victim"` + members + `}` }
	add := func(path, name, body, field string, want int) {
		all = append(all, hostile{name: path + ": " + name, path: path, body: body, want: want, field: field})
	}
	for path, right := range map[string]func(string) string{
		reports: report, appeals: func(m string) string { return appeal(`,"reason":"mine"` + m) },
	} {
		add(path, "nothing", "{}", "", 400)
		add(path, "null", "null", "", 400)
		add(path, "no JSON", "code=victim", "", 400)
		add(path, "an unknown member", right(`,"x":1`), "x", 400)
		add(path, "a link twice", right(`,"code":"other"`), "code", 400)
		add(path, "two links", right(`,"short_url":"https://curt.test/victim"`), "short_url", 400)
		add(path, "another's domain", right(`,"domain":"evil.example"`), "domain", 400)
		add(path, "a domain that is a number", right(`,"domain":1`), "domain", 400)
		for name, link := range map[string]string{
			"a code with a slash": `"code":"a/../b"`, "a code of markup": `"code":"<script>"`, "a code with a line end": `"code":"a\r\nb"`, "a long code": `"code":"` + strings.Repeat("a", 65) + `"`,
			"no link": `"code":""`, "null": `"code":null`, "a number": `"code":1`, "another's URL": `"short_url":"https://evil.example/victim"`,
			"a script": `"short_url":"javascript:alert(1)"`, "a long URL": `"short_url":"https://curt.test/` + strings.Repeat("a", 3000) + `"`, "a URL of NUL": `"short_url":"\u0000"`,
			"a URL without a code": `"short_url":"https://curt.test/"`, "a URL that is an array": `"short_url":[]`,
		} {
			add(path, name, strings.Replace(right(""), `"code":"victim"`, link, 1), "", 400)
		}
		add(path, "too much", right(`,"text":"`+strings.Repeat("x", 20_000)+`"`), "", 413)
		all = append(all,
			hostile{name: path + ": of another site", path: path, headers: []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, body: right(""), want: 403},
			hostile{name: path + ": by no method", path: path, method: http.MethodPatch, body: right(""), want: 405},
			hostile{name: path + ": as a form", path: path, headers: []string{"Content-Type: application/x-www-form-urlencoded"}, body: "code=victim", want: 415},
			hostile{name: path + ": a wrong key", path: path, headers: []string{"Authorization: Bearer wrong"}, body: right(""), want: 401},
			hostile{name: path + ": a parameter", path: path + "?code=victim", body: right(""), want: 400, field: "code"},
		)
	}
	for name, category := range map[string]string{"empty": `""`, "unknown": `"nice"`, "null": "null", "a number": "1", "in capitals": `"SPAM"`, "with a line end": `"spam\n"`} {
		add(reports, "category "+name, `{"code":"victim","category":`+category+`}`, "category", 400)
	}
	for field, most := range map[string]int{"text": 1000, "contact": 254} {
		for name, value := range map[string]string{
			"long": `"` + strings.Repeat("a", most+1) + `"`, "of two bytes": `"` + strings.Repeat("é", most/2+1) + `"`, "with an escape": `"\u001b[2J"`, "with NUL": `"\u0000"`,
			"with a lone surrogate": `"\ud800"`, "a number": "1", "an object": "{}",
		} {
			add(reports, field+" "+name, report(fmt.Sprintf(`,%q:%s`, field, value)), field, 400)
		}
	}
	add(reports, "contact of two lines", report(`,"contact":"a\nb"`), "contact", 400)
	for name, reason := range map[string]string{"empty": `""`, "blank": `" \n "`, "long": `"` + strings.Repeat("a", 1001) + `"`, "with NUL": `"\u0000"`, "null": "null", "a list": "[]"} {
		add(appeals, "reason "+name, appeal(`,"reason":`+reason), "reason", 400)
	}
	return append(all, badReviews()...)
}

// badReviews are wrong for moderators.
func badReviews() (all []hostile) {
	get := func(query, field string) {
		all = append(all, hostile{name: "reviews?" + query, method: http.MethodGet, path: reviews + "?" + query, want: 400, field: field})
	}
	for field, values := range map[string][]string{
		"limit": {"0", "101", "-1", "1e1", "x", ""}, "state": {"deleted", "OPEN", ""}, "source": {"all", "policy,report", ""}, "category": {"nice", ""},
		"min_score": {"-1", "101", "1.5", "x"}, "host": {"a%20b", "%00", "a/b", "https://a.example", ""}, "overdue": {"maybe", "1", ""},
		"sort": {"score", "-due_at", "id%3Bdrop", ""}, "cursor": {"x", "AAAA", strings.Repeat("A", 2000), "..", ""}, "x": {"1"},
	} {
		for _, v := range values {
			get(field+"="+v, field)
		}
	}
	get("limit=1&limit=2", "limit")
	get("%zz=1", "")
	for _, path := range []string{"/nobody", "/nobody/texts", "/" + strings.Repeat("a", 65), "/%2e%2e", "/a%2fb", "/%00", "/victim?domain=evil.example"} {
		method := http.MethodGet
		if strings.HasSuffix(path, "/texts") {
			method = http.MethodDelete
		}
		all = append(all, hostile{name: "review " + path, method: method, path: reviews + path, want: 404})
	}
	post := func(path, name, body, field string, want int) {
		all = append(all, hostile{name: path + " " + name, path: reviews + path, body: body, want: want, field: field})
	}
	one := `{"code":"victim","safety":"blocked","reason":"x"}`
	post("/decisions", "none", `{"decisions":[]}`, "decisions", 400)
	post("/decisions", "nothing", `{}`, "decisions", 400)
	post("/decisions", "null", `{"decisions":null}`, "decisions", 400)
	post("/decisions", "no list", `{"decisions":`+one+`}`, "decisions", 400)
	post("/decisions", "too many", `{"decisions":[`+strings.Repeat(one+",", 100)+one+`]}`, "decisions", 400)
	post("/decisions", "an unknown member", `{"decisions":[{"code":"victim","safety":"blocked","reason":"x","actor":"policy"}]}`, "", 400)
	post("/decisions", "a safety that is a number", `{"decisions":[{"code":"victim","safety":4,"reason":"x"}]}`, "", 400)
	post("/decisions", "too large", `{"decisions":[`+strings.Repeat(" ", 1<<20+1)+`]}`, "", 413)
	post("/victim/answer", "an answer to nobody", `{"safety":"clean","answer":"x"}`, "", 404)
	post("/nobody/answer", "an answer about nothing", `{"safety":"clean","answer":"x"}`, "", 404)
	for name, body := range map[string]string{"safety": `{"safety":"x","answer":"x"}`, "answer": `{"safety":"clean","answer":" "}`} {
		post("/victim/answer", "a wrong "+name, body, name, 400)
	}
	post("/victim/answer", "a long answer", `{"safety":"clean","answer":"`+strings.Repeat("x", 1025)+`"}`, "answer", 400)
	post("/victim/answer", "an unknown member", `{"safety":"clean","answer":"x","reason":"y"}`, "reason", 400)
	for _, path := range []string{"/AAAAAAAAAAAAAAAAAAAAAA", "/x", "/%22", "/" + strings.Repeat("A", 5000)} {
		all = append(all, hostile{name: "appeal " + path[:2], method: http.MethodGet, path: appeals + path, want: 404})
	}
	return append(all,
		hostile{name: "an appeal of a clean link", method: http.MethodGet, path: collection + "/victim/appeal", want: 404},
		hostile{name: "the queue by no method", method: http.MethodPost, path: reviews, body: "{}", want: 405},
	)
}

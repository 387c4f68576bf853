package lookalike_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/listfile"
	"curt/internal/abuse/lookalike"
	"curt/internal/weburl"
)

func lookAlikes(tb testing.TB) *lookalike.Signal {
	tb.Helper()
	return abusetest.Must[*lookalike.Signal](tb)(lookalike.New(""))
}

func TestImitations(t *testing.T) {
	abusetest.Check(t, lookAlikes(t),
		[]string{
			"https://rnicrosoft.com/", "https://paypa1.com/", "https://www.paypaI.example/", "https://раураl.com/", "https://xn--pypal-4ve.com/", "https://paypạl.com/",
			"https://paypal.com.evil.example/", "https://paypal-login.example/", "https://login-paypal.example/", "https://secure.paypal.evil.example/", "https://paypal.evil.example/",
			"https://securepaypal24.example/", "https://mypaypal.example/", "https://www-paypal-com.example/", "https://paypalcom.example/", "https://wwwpaypal.example/",
			"https://pay-pal.example/", "https://wells-fargo-verify.example/", "https://paypall.com/", "https://pyapal.com/", "https://googel.com/", "https://gooogle.com/",
			"https://faceb00k.com/", "https://facebook-security-team.example/", "https://netfl1x.com/", "https://netflix.top/", "https://amaz0n-prime.example/", "https://аррlе.com/",
			"https://appleid.example/", "https://apple-id-verify.example/", "https://apple.com.evil.example/", "https://verify.apple.evil.example/", "https://app1e.com/",
			"https://dhl-paket-konto.example/", "https://login.chase.evil.example/", "https://chase-secure.example/", "https://rnetarnask.io/", "https://metamask-wallet.example/",
			"https://paypal-login.web.app/", "https://paypal.github.io/", "https://paypal-login.s3.amazonaws.com/", "https://microsoftonline.evil.example.microsoft.com.login.example/",
			"https://office365-login.example/", "https://0ffice365.example/", "https://twitternow.example/", "https://paypal-x7k2.example/", "https://GOOGLE.COM.evil.example./",
			"https://micrоsoft-support.example/", "https://irs-refund.example/", "https://volksbank-kundenservice.example/",
		},
		[]string{
			"https://paypal.com/signin", "https://www.paypal.de/", "https://microsoft.com/", "https://login.microsoftonline.com/", "https://amazon.co.jp/dp/1", "https://www.google.com.br/",
			"https://appleid.apple.com/", "https://facebook.github.io/react", "https://docs.google.com/forms", "https://paypal.me/someone",
			"https://pineapple.example/", "https://snapple.com/", "https://metabolic.example/", "https://metaverse.example/", "https://applebees.com/", "https://apple-pie.example/",
			"https://target.example/", "https://apple.fandom.com/", "https://orange-juice.example/", "https://chasephotography.example/", "https://discordant.example/", "https://zoomtours.example/",
			"https://papal.example/", "https://finance.example/", "https://horizon.example/", "https://twister.example/", "https://interest.example/", "https://payal.example/", "https://goggle.example/",
			"https://example.com/paypal/login", "https://example.com/?u=paypal.com", "https://netflix-reviews.example/", "https://amazon-rainforest.example/", "https://accounting.example/",
			"https://clear.example/", "https://modern.example/", "https://startups.example/", "https://shipping.example/", "https://training.example/", "https://www.chase.example/",
			"https://appie.nl/", "https://lidi.example/", "https://münchen.example/", "https://日本語.example/", "https://яндекс.example/", "https://bücher.example/", "http://192.0.2.1/", "https://localhost/",
			"https://co.uk/", "https://steamboat.example/", "https://waterways.example/", "https://irstea.example/", "https://telecom.example/", "https://clubmed.example/",
		})
}

func TestTheEvidenceNamesTheBrand(t *testing.T) {
	for raw, want := range map[string]string{
		"https://www.rnicrosoft.example/":    "rnicrosoft in www.rnicrosoft.example reads like microsoft of microsoft.com",
		"https://pаypal.com.example/":        "pаypal in xn--pypal-4ve.com.example reads like paypal of paypal.com, and mixes Cyrillic, Latin",
		"https://apple.com.evil.example/x":   "apple.com in apple.com.evil.example reads like apple of apple.com",
		"https://a.paypal-login.evil.co.uk/": "paypal-login in a.paypal-login.evil.co.uk reads like paypal of paypal.com",
	} {
		if got := abusetest.Evidence(t, lookAlikes(t), abusetest.Morning(), abusetest.Facts(t, raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func TestBrandsOfAnOperator(t *testing.T) {
	path := filepath.Join(t.TempDir(), "brands.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# ours\nwidgetbank widgetbank.example widgetbank.* !widgetband # a comment\n~wid wid.example\n-paypal\n\n-netflix\nnetflix netflix.example\n")
	l := abusetest.Must[*lookalike.Signal](t)(lookalike.New(path))
	abusetest.Check(t, l,
		[]string{"https://wigdetbank.com/", "https://widgetbank-login.com/", "https://widgetbank.com/", "https://wid-login.com/", "https://netflix.com/"},
		[]string{"https://widgetbank.example/", "https://a.widgetbank.example/", "https://widgetbank.de/", "https://widgetband.com/", "https://wid.com/", "https://paypa1.com/", "https://netflix.example/"})
	if was := lookAlikes(t).Len(); l.Len() != was+1 {
		t.Errorf("%d brands, of %d", l.Len(), was)
	}
	for name, text := range map[string]string{
		"no domain": "widgetbank\n", "no name": "Widget widget.example\n", "short": "wb wb.example\n", "an address": "widget 192.0.2.1\n", "a URL": "widget https://widget.example/\n",
		"everybody's": "widget github.io\n", "a star in front": "widget *.widget.example\n", "a domain with a star": "widget widget.example.*\n", "upper case": "widget Widget.example\n",
		"a word that is none": "widget widget.example !w\n", "bytes": "widget widget.example \xff\n", "too many": manyBrands(6000),
	} {
		write(text)
		if _, err := lookalike.New(path); !errors.Is(err, listfile.ErrDataFile) {
			t.Errorf("%s: %v", name, err)
		} else if name != "too many" && !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v names no line", name, err)
		}
	}
}

func manyBrands(n int) string {
	var text strings.Builder
	for i := range n {
		name := "brand"
		for ; i > 0; i /= 26 {
			name += string(rune('a' + i%26))
		}
		text.WriteString(name + " " + name + ".example\n")
	}
	return text.String()
}

// Whatever a host is, nothing below a brand's own domain imitates anybody. What it costs is
// in TestSlowURLsAreJudgedInMicroseconds.
func FuzzLookAlike(f *testing.F) {
	for _, host := range []string{"rnicrosoft.com", "раураl.com", "xn--pypal-4ve.com", strings.Repeat("login-", 30) + "x.example", strings.Repeat("a.", 120) + "b", "日本-paypal.example", "--paypal--.x-", "[::1]"} {
		f.Add(host)
	}
	l := abusetest.Must[*lookalike.Signal](f)(lookalike.New(""))
	f.Fuzz(func(t *testing.T, host string) {
		for _, raw := range []string{"https://" + host + "/", "https://example.com/" + host, "https://" + host + ".paypal.com/"} {
			u, err := weburl.Parse(raw)
			if err != nil {
				continue
			}
			found, err := l.Inspect(t.Context(), time.Now(), &abuse.Facts{URL: u})
			if err != nil || len(found) > 1 {
				t.Errorf("%q: %v, %v", raw, found, err)
			}
			if strings.HasSuffix(u.Host(), ".paypal.com") && len(found) > 0 {
				t.Errorf("%q is at home: %v", raw, found)
			}
		}
	})
}

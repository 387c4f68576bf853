package lookalike_test

import (
	"fmt"
	"slices"
	"strings"

	"curt/internal/abuse/lookalike"
	"curt/internal/weburl"
)

// The corpus of this package's proof: hosts that imitate listed brands, made by rules, and
// URLs of honest sites (benign_test.go). Everything in it is written here or made by these
// rules; nothing is copied from a list of real attacks.
//
// The rules are the families that studies of imitated domains tell apart: typing errors
// (Agten et al., "Seven Months' Worth of Mistakes", NDSS 2015), homographs within ASCII and
// of other scripts and wrong top-level domains (Tian et al., "Needle in a Haystack", IMC
// 2018; Quinkert et al., "It's Not What It Looks Like", CNS 2019), names combined with
// words (Kintis et al., "Hiding in Plain Sight", CCS 2017), and names in sub-domains
// (Roberts et al., "You Are Who You Appear to Be", CCS 2019).

// imitation is one host that pretends, and the rule that made it.
type imitation struct{ rule, host string }

// imitations are made of one brand. Of names that are also words, typing errors are other
// words or none, and bare names are everybody's: those rules are left out for them.
func imitations(b lookalike.Brand) []imitation {
	var all []imitation
	add := func(rule string, hosts ...string) {
		for _, h := range hosts {
			if h != "" {
				all = append(all, imitation{rule, h})
			}
		}
	}
	add("homograph in ASCII", each(asciiDisguises(b.Name), "%s.com")...)
	add("homograph of another script", each(scriptDisguises(b.Name), "%s.com")...)
	for _, combined := range []string{
		"%s-login", "%s-signin", "login-%s", "secure-%s", "%s-verify-account", "%slogin", "secure%s", "%s-support", "account-%s-update",
		"%s-secure24", "verify-%s-billing", "%s-konto-sicherheit", "%s-connexion", "%s-seguridad", "my-%s-account", "%saccountverify",
		"auth-%s-x7k2m9", "www-%s-com", "%s-com-signin", "update.%s-id",
	} {
		add("combined with words", fmt.Sprintf(combined, b.Name)+".example")
	}
	add("in a sub-domain", b.Name+".com.evil.example", "www."+b.Name+".com.login-page.example", b.Home+".session-8841.example",
		"login."+b.Name+".evil.example", b.Name+".secure-login.example", "verify."+b.Name+".web.app", b.Name+"-login.pages.dev")
	if b.Common {
		return all
	}
	add("in a sub-domain", b.Name+".evil.example", "www."+b.Name+".evil.example", b.Name+".weebly.com")
	add("another top-level domain", b.Name+".top", b.Name+".xyz", b.Name+".support")
	if len(b.Name) >= 6 {
		add("typing error", each(typos(b.Name), "%s.com")...)
	}
	return all
}

// each fills in a form.
func each(names []string, form string) []string {
	for i, n := range names {
		if n != "" {
			names[i] = fmt.Sprintf(form, n)
		}
	}
	return names
}

// asciiDisguises writes a name with letters that look like others, a kind at a time. Names
// under six letters keep their i and l: what differs from them so is another short word.
func asciiDisguises(name string) []string {
	pairs := [][2]string{{"m", "rn"}, {"w", "vv"}, {"d", "cl"}, {"o", "0"}, {"l", "1"}}
	if len(name) >= 6 {
		pairs = append(pairs, [2]string{"i", "l"}, [2]string{"l", "i"}, [2]string{"i", "1"}, [2]string{"e", "3"}, [2]string{"a", "4"}, [2]string{"s", "5"})
	}
	var all []string
	for _, p := range pairs {
		if i := strings.Index(name, p[0]); i >= 0 {
			all = append(all, name[:i]+p[1]+name[i+1:], strings.ReplaceAll(name, p[0], p[1]))
		}
	}
	return all
}

// scriptDisguises writes a name with letters of other scripts and with accents, as
// A-labels. What no host may be is left out.
func scriptDisguises(name string) []string {
	cyrillic := strings.NewReplacer("a", "а", "e", "е", "o", "о", "p", "р", "c", "с", "x", "х", "y", "у", "i", "і", "s", "ѕ", "k", "к", "t", "т", "m", "м")
	greek := strings.NewReplacer("a", "α", "o", "ο", "i", "ι", "p", "ρ", "v", "ν", "u", "υ", "k", "κ")
	accents := strings.NewReplacer("a", "à", "e", "é", "i", "ı", "o", "ö", "u", "ü", "n", "ń", "c", "ç", "s", "ş", "l", "ł")
	var all []string
	for _, in := range []string{cyrillic.Replace(name), greek.Replace(name), accents.Replace(name), name[:1] + cyrillic.Replace(name[1:2]) + name[2:], name[:2] + accents.Replace(name[2:])} {
		if in == name {
			continue
		}
		if u, err := weburl.Parse("https://" + in + "/"); err == nil {
			all = append(all, u.Host())
		}
	}
	return all
}

// typos are errors of one letter behind the first: left out, twice, exchanged, and the key
// beside it. What has fewer than six letters then is left out: it is another short word.
func typos(name string) []string {
	const keys = "qwertyuiop asdfghjkl zxcvbnm"
	var all []string
	for i := 1; i < len(name); i++ {
		all = append(all, name[:i]+name[i+1:], name[:i]+name[i:i+1]+name[i:])
		if i+1 < len(name) && name[i] != name[i+1] {
			all = append(all, name[:i]+name[i+1:i+2]+name[i:i+1]+name[i+2:])
		}
		if at := strings.IndexByte(keys, name[i]); at > 0 && keys[at-1] != ' ' {
			all = append(all, name[:i]+keys[at-1:at]+name[i+1:])
		}
	}
	return slices.DeleteFunc(all, func(typo string) bool { return len(typo) < 6 || typo == name })
}

// kitPaths are where kits of phishing pages lie on the server that they were unpacked on:
// within folders of what was there, under names of brands and pages, with made-up folders
// (Cova et al., "There Is No Free Phish", WOOT 2008; Oest et al., "Inside a Phisher's Mind",
// eCrime 2018; Bijmans et al., "Catching Phishers By Their Bait", USENIX Security 2021).
func kitPaths(brand string) []string {
	return []string{
		"/", "/login", "/" + brand + "/login.php", "/wp-includes/" + brand + "/signin/", "/.well-known/" + brand + "/verify/index.html", "/secure/" + brand + "/webscr?cmd=_login",
		"/customer_center/customer-IDPP00C274/myaccount/signin/", "/update/account/confirm.html", "/a8f3c1/" + brand + "/passwort", "/~user/" + brand + ".com/login/verification.php",
	}
}

package lookalike_test

import (
	"fmt"
	"strings"
)

// usual are URLs of honest sites: hosts as news, shops, schools, clubs, public bodies and
// projects have them, each with paths as their pages have them. Names are written here;
// ".example" stands for those that nobody has.
func usual() []string {
	var all []string
	for host := range strings.FieldsSeq(usualHosts) {
		for _, path := range []string{
			"/", "/2026/03/14/council-votes-on-the-new-bridge.html", "/en/product/running-shoes-42?color=blue&ref=mail", "/login?next=%2Forders", "/account/orders/8841",
			"/blog/how-paypal-and-amazon-changed-shopping", "/impressum",
		} {
			all = append(all, "https://"+host+path)
		}
	}
	words := strings.Fields(usualWords)
	for i, word := range words {
		other := words[(i*7+3)%len(words)]
		all = append(all, fmt.Sprintf("https://www.%s.example/", word), fmt.Sprintf("https://%s%s.example/shop", word, other), fmt.Sprintf("https://%s-%s.example/news/%d", other, word, i),
			fmt.Sprintf("https://%s.%s.example/login", word, other), fmt.Sprintf("https://%s.github.io/%s/", word, other))
	}
	return all
}

const usualHosts = `
en.wikipedia.org de.wikipedia.org www.bbc.co.uk www.nytimes.com www.theguardian.com www.spiegel.de www.lemonde.fr elpais.com www.repubblica.it www.asahi.com
www.reuters.com apnews.com www.tagesschau.de www.heise.de arstechnica.com news.ycombinator.com www.economist.com www.washingtonpost.com www.ft.com lwn.net
www.mozilla.org go.dev pkg.go.dev docs.python.org www.rust-lang.org kernel.org www.debian.org archlinux.org stackoverflow.com serverfault.com
www.etsy.com www.otto.de www.thomann.de www.decathlon.fr www.bol.com www.allegro.pl www.coolblue.nl www.galeries.example www.migros.ch www.rewe.de
www.mit.edu www.ox.ac.uk ethz.ch www.tum.de www.u-tokyo.ac.jp www.usp.br www.nasa.gov www.who.int europa.eu www.gov.uk www.bund.de www.service-public.fr
www.openstreetmap.org archive.org www.gutenberg.org arxiv.org www.nature.com www.sciencemag.org doi.org pubmed.ncbi.nlm.nih.gov www.ietf.org www.w3.org
www.bahn.de www.sncf-connect.com www.sbb.ch www.nationalrail.co.uk www.klm.com www.airfrance.fr www.imdb.com www.goodreads.com www.chefkoch.de www.marmiton.org
www.nhs.uk www.red-cross.example www.unicef.org www.amnesty.org www.greenpeace.org www.wwf.org.uk www.bundestag.de www.parliament.uk www.senat.fr www.congress.gov
medium.com substack.com www.tumblr.com vimeo.com soundcloud.com bandcamp.com www.twitch.tv mastodon.social lemmy.world bsky.app
www.booking-hall.example www.stadtwerke.example volkshochschule.example sparverein.example rathaus.example www.fc-example.example verein.example musikschule.example
münchen.example übersetzer.example café-central.example 日本語.example президент.example ελλάδα.example español.example smörgåsbord.example`

// usualWords are everyday words, some of which begin, end or sound like a brand.
const usualWords = `
garden window bridge market coffee river mountain library museum kitchen bicycle camera guitar winter summer harvest orchard pineapple grapple dapple chapel maple
metabolic metal metaphor metamorphosis metadata discover discovery discordant accord steamer steamboat mainstream chaser purchase enchase paychase targets
orangery blorange zoom-lens kazoom stripes pinstripe slackline likewise otherwise clockwise wisely unwise bookings bookstore facebow faceless googly goggles amazing
amazement amazonian net network netting flicker flexing linked linking instant instance whatnot teletext telegraph drop dropper boxing outlooker looking
interesting wordsmith pressing spotlight spotted reddish redeem twitching twitchy snapdragon chat chatter payable paypack palette papaya palace palm ebb bayside
delivery upside upset cups groups soups erst first irish iris stairs chairs royal mailbox postman postal posting parcel expressway dishes hermit hermitage
verify verified accounts accounting banking bankers bank baker securely secured supporter supporting updates dating logins logistics loginova
apfel birne kirche schule rathaus garten fenster strasse bruecke markt zeitung versicherung finanzen kredit konten kundenberatung sparbuch
compteur comptoir cuentos contable contador clavel santuario santana barclaycourt lloyd wells fargone capitals onedirection clouds cloudy icloudless micro softball software
microscope softness adobes adobehouse linkage salesman forceful shops shopper gopher goose hub hubris labs gitter wishes westernmost union unions coins based finances`

// hard are URLs of honest pages that have the word of a brand in them, or its own hosts in
// other countries, or both a word of a login and of a brand.
func hard() []string { return strings.Fields(hardURLs) }

const hardURLs = `
https://www.paypal.de/login https://www.paypal.co.uk/signin https://www.paypal.com.br/ https://www.amazon.de/ap/signin https://www.amazon.co.jp/dp/B0 https://www.amazon.com.mx/ https://www.amazon.com.au/
https://www.google.fr/search?q=paypal+login https://www.google.co.in/ https://accounts.google.com/signin https://www.ebay.co.uk/itm/1 https://www.ebay.de/ https://signin.ebay.com/ https://www.netflix.de/
https://login.microsoftonline.com/common/oauth2 https://account.live.com/password/reset https://appleid.apple.com/account https://secure.chase.com/web/auth https://www.facebook.com/login.php
https://id.atlassian.example/login https://signin.aws.amazon.com/ https://www.ikea.de/ https://www.booking.com/login https://www.dhl.de/de/privatkunden/pakete-empfangen/verfolgen.html https://www.ing.de/
https://www.paypal-community.com/ https://www.deutsche-bank.de/ https://banking.postbank.de/login https://www.santander.co.uk/ https://www.vodafone.it/ https://mail.yahoo.co.jp/ https://www.orange.fr/portail
https://facebook.github.io/react/ https://google.github.io/styleguide/ https://microsoft.github.io/monaco-editor/ https://aws.amazon.com/ https://netflixtechblog.com/ https://github.blog/
https://example.com/paypal https://example.com/paypal/login https://news.example/2026/microsoft-outage https://blog.example/amazon-prime-day-deals https://wiki.example/index.php?title=Facebook&action=edit
https://forum.example/t/cannot-verify-my-paypal-account/8841 https://help.example/en/articles/connect-your-google-account https://docs.example/integrations/stripe/webhooks https://docs.example/sso/okta-setup
https://news.example/technology/apple https://radio.example/podcasts/spotify https://school.example/office365 https://example.org/wp-content/plugins/woocommerce-paypal-payments/readme.txt
https://netflix-reviews.example/ https://netflixfans.example/ https://amazon-rainforest.example/ https://apple-pie-recipes.example/ https://applefarm.example/ https://apple-orchard.example/
https://apple.fandom.com/wiki/Apple https://steam.fandom.com/ https://discord.fandom.com/ https://target-shooting.example/ https://target.example/ https://www.chase.example/ https://chase-photography.example/
https://orange-county.example/ https://orange.example/ https://orangetheory.example/ https://meta-analysis.example/ https://metabolic.example/ https://metaverse-news.example/ https://zoom-in.example/
https://stripe-patterns.example/ https://www.stripes.example/ https://signal-processing.example/ https://slack-line.example/ https://ups-and-downs.example/ https://push-ups.example/ https://startups.example/
https://theirs.example/ https://irs-attorney.example/ https://ing-mar.example/ https://engineering.example/login https://training.example/account https://hermes-greek-god.example/ https://hermes.university.example/
https://prime-numbers.example/ https://primefactor.example/ https://wise-words.example/ https://wisecrack.example/ https://nike-statue.example/ https://victory-nike.example/ https://visa-application.example/
https://visa-for-india.example/ https://telekom-museum.example/ https://kraken-legends.example/ https://general-ledger.example/ https://ledger-lines.example/ https://telegram-history.example/ https://the-telegram.example/
https://pineapple.example/login https://www.snapple.com/ https://www.applebees.com/ https://www.metalife.example/ https://clash.example/ https://amazons-of-greece.example/ https://www.amazone.de/
https://papal.example/visit https://finance.yahoo.com/ https://personal-finance.example/login https://new-horizon.example/ https://twister.example/ https://discard.example/ https://telecom-museum.example/
https://interest.example/rates https://goggle.example/ https://revolt.example/ https://www.citybank.example/ https://barclay.example/ https://www.thetelegram.com/ https://www.telegraph.co.uk/
https://appie.nl/ https://www.ah.nl/appie https://lidi.example/ https://payal.example/ https://www.paymaster.example/ https://paypoint.example/ https://www.playpal.example/ https://www.applied.example/
https://microsite.example/ https://microsofa.example/ https://googol.example/ https://www.linkdin-park.example/ https://www.facebock.example/ https://dropbear.example/ https://www.netflax.example/
https://adoberoad.example/ https://adobe-bricks.example/ https://adobe-houses.example/ https://santander-tourism.example/ https://huawei-phones-review.example/ https://samsung-repair-berlin.example/
https://iphone-reparatur.example/ https://playstation-history.example/ https://nintendo-museum.example/ https://ikea-hacks.example/ https://lufthansa-flightclub.example/ https://spotify-playlists.example/
https://instagram-marketing-agency.example/ https://facebook-ads-course.example/ https://google-maps-guide.example/ https://whatsapp-stickers.example/ https://tiktok-trends.example/ https://github-profile.example/
https://youtube-music-charts.example/ https://amazon-basin.example/ https://reddit-best-of.example/ https://wordpress-themes.example/ https://shopify-experts.example/ https://salesforce-admins.example/
https://login.example/ https://secure.example/ https://account.university.example/login https://verify.example/ https://support.project.example/ https://update.project.example/ https://wallet.museum.example/
https://www.sparkassen-fussballverein.example/ https://raiffeisen-lager.example/ https://docs.microsoft.com/ https://gitlab.gnome.org/GNOME https://github.company.example/login https://sharepoint.school.example/ https://wordpress.club.example/ https://paypal.com.example.org.paypal.com/ https://apple-blossom.example/update https://payments.example/stripe`

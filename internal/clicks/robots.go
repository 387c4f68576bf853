package clicks

import "bytes"

// saysRobot reports whether a user agent says by itself that it is a robot's, whichever: lists
// name those that somebody has met. Brands that sound like bots are masked in text.
func saysRobot(text []byte) bool {
	lower := bytes.ToLower(text)
	for _, ending := range []string{"bot", "bots", "crawler", "spider"} {
		if endsWord(lower, ending) {
			return true
		}
	}
	// People's browsers have no address. One has a version there: Ecosia android@150.0.
	if _, host, found := bytes.Cut(lower, []byte("@")); found && letterAt(host, 0) {
		return true
	}
	for _, part := range []string{"lighthouse", "playwright", "selenium", "synthetics"} { // what drives browsers
		if bytes.Contains(lower, []byte(part)) {
			return true
		}
	}
	return compatible(lower)
}

// endsWord reports whether a word of the text ends so.
func endsWord(lower []byte, ending string) bool {
	for at := 0; ; {
		i := bytes.Index(lower[at:], []byte(ending))
		if i < 0 {
			return false
		}
		if at += i + len(ending); !letterAt(lower, at) {
			return true
		}
	}
}

// compatible reports whether a user agent calls itself compatible to something, as robots do.
// Of browsers only Internet Explorer and Konqueror did.
func compatible(lower []byte) bool {
	for _, before := range []string{"(compatible", "; compatible"} {
		_, rest, found := bytes.Cut(lower, []byte(before))
		if !found || letterAt(rest, 0) {
			continue
		}
		rest = bytes.TrimLeft(rest, "; ")
		if !bytes.HasPrefix(rest, []byte("msie")) && !bytes.HasPrefix(rest, []byte("konqueror")) && !bytes.Contains(rest, []byte("trident/")) {
			return true
		}
	}
	return false
}

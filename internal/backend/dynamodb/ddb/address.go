package ddb

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"curt/internal/link"
)

// Scheme begins the URL of a table.
const Scheme = "dynamodb://"

// stateSuffix ends the name of the table beside that of links.
const stateSuffix = "-state"

// Address is what CURT_LINKS says: dynamodb://TABLE?region=R, and where it is not that of AWS
// endpoint=URL. tags and protection are for curt migrate, which creates the tables.
type Address struct {
	Table      string            // of links; "" is no address
	Region     string            // "" = as the SDK finds it: AWS_REGION, the profile, the machine
	Endpoint   string            // "" = that of the region
	Tags       map[string]string // of new tables
	Protection bool              // new tables cannot be deleted until an operator allows it
}

// State names the table of all that is not a link.
func (a Address) State() string { return a.Table + stateSuffix }

// isTable reports whether DynamoDB accepts a name, with room for the suffix.
func isTable(name string) bool {
	return regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,240}$`).MatchString(name)
}

// ParseAddress reads a URL; the error says in one line what is wrong with it, and wraps
// link.ErrInvalid.
func ParseAddress(text string) (a Address, err error) {
	u, err := url.Parse(text)
	fail := func(want string) (Address, error) { return Address{}, fmt.Errorf("%w: %s", link.ErrInvalid, want) }
	if err != nil || u.Scheme+"://" != Scheme || !isTable(u.Host) || strings.Trim(u.Path, "/") != "" || u.User != nil || u.Fragment != "" {
		return fail("expected dynamodb://TABLE?region=REGION, where TABLE has 3 to 240 characters of A-Z a-z 0-9 _ . -")
	}
	a = Address{Table: u.Host, Protection: true}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("a query that cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		switch name {
		case "region":
			a.Region = value
		case "endpoint":
			if e, err := url.Parse(value); err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" {
				return fail("endpoint: expected http://host:port or https://host")
			}
			a.Endpoint = value
		case "tags":
			if a.Tags, err = parseTags(value); err != nil {
				return Address{}, err
			}
		case "protection":
			if value != "on" && value != "off" {
				return fail("protection: expected on or off")
			}
			a.Protection = value == "on"
		default:
			return fail("unknown parameter " + name + "; expected region, endpoint, tags and protection")
		}
	}
	return a, nil
}

func parseTags(text string) (map[string]string, error) {
	tags := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("%w: tags: expected name:value,name:value", link.ErrInvalid)
		}
		tags[name] = value
	}
	return tags, nil
}

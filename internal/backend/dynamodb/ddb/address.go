package ddb

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
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

// ParseAddress reads a URL; the error says in one line what is wrong with it.
func ParseAddress(text string) (a Address, err error) {
	u, err := url.Parse(text)
	fail := func(want string) (Address, error) { return Address{}, errors.New(want) }
	if err != nil || u.Scheme+"://" != Scheme || !isTable(u.Host) || strings.Trim(u.Path, "/") != "" || u.User != nil || u.Fragment != "" {
		return fail("expected dynamodb://TABLE?region=REGION, where TABLE has 3 to 240 characters of A-Z a-z 0-9 _ . -")
	}
	a = Address{Table: u.Host, Protection: true}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("a query that cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) > 1 {
			return fail(name + " is given twice")
		}
		if err := a.set(name, query.Get(name)); err != nil {
			return Address{}, err
		}
	}
	return a, nil
}

// set takes one parameter.
func (a *Address) set(name, value string) (err error) {
	switch name {
	case "region":
		if !regexp.MustCompile(`^[a-z0-9-]{1,64}$`).MatchString(value) {
			return errors.New("region: expected one such as eu-central-1")
		}
		a.Region = value
	case "endpoint":
		e, err := url.Parse(value)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Hostname() == "" || strings.Trim(e.Path, "/") != "" ||
			e.User != nil || e.RawQuery != "" || e.ForceQuery || e.Fragment != "" {
			return errors.New("endpoint: expected http://host:port or https://host; credentials are those of AWS")
		}
		a.Endpoint = value
	case "tags":
		a.Tags, err = parseTags(value)
	case "protection":
		if value != "on" && value != "off" {
			return errors.New("protection: expected on or off")
		}
		a.Protection = value == "on"
	default:
		return fmt.Errorf("unknown parameter %q; expected region, endpoint, tags and protection", name)
	}
	return err
}

// What AWS takes as tags of a table.
const (
	maxTags     = 50
	maxTagName  = 128
	maxTagValue = 256
)

func parseTags(text string) (map[string]string, error) {
	tags := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, ":")
		_, twice := tags[name]
		switch {
		case !ok || name == "":
			return nil, errors.New("tags: expected name:value,name:value")
		case twice:
			return nil, fmt.Errorf("tags: %q is given twice", name)
		case strings.EqualFold(name, "aws"):
			return nil, errors.New("tags: names that begin with aws: are those of AWS itself")
		case !isTag(name, maxTagName) || !isTag(value, maxTagValue):
			return nil, errors.New("tags: expected names of up to 128 and values of up to 256 letters, digits, spaces and _ . : / = + - @")
		}
		tags[name] = value
	}
	if len(tags) > maxTags {
		return nil, fmt.Errorf("tags: expected up to %d", maxTags)
	}
	return tags, nil
}

func isTag(text string, most int) bool {
	return utf8.RuneCountInString(text) <= most && regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`).MatchString(text)
}

package process

// What the tests of parsing need.
var (
	ParseStat   = parseStat
	ParseKiB    = parseKiB
	ParseClocks = parseClocks
	Mounted     = mounted
)

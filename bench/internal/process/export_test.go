package process

// What the tests of parsing need.
var (
	ParseStat = parseStat
	ParseKiB  = parseKiB
	Mounted   = mounted
	Listening = listening
)

package useragent

func SpiderPatterns() int { return len(spiderPatterns()) }

// Names are the lists whose numbers are stored, and how many of each a reader knows.
func StoredNames() (device, browser, os []string, known [3]int) {
	return deviceNames(), browserNames(), osNames(), [3]int{numDevices, numBrowsers, numSystems}
}

// Package faults kills the built binary, cuts its power, fills its disk and fails
// its fsyncs while clients work, and compares what it remembers afterwards with
// what it told them.
//
// kill -9 keeps the page cache: it proves the logic and never the fsync. Therefore
// power_linux_test.go takes unsynced pages away (a file system of the test's own is
// shut down) and makes fsync fail (strace). Each has a control that must lose
// something; a fault test without one may be testing nothing.
//
// The tests need Linux. Those of power and of a full disk need root, loop devices
// and mkfs.ext4, those of failing fsyncs strace; without them they are skipped with
// a line that says what is missing, and under CI they fail with it. CURT_TEST_LONG=1
// (make soak) runs many more rounds.
package faults
